import { describe, expect, test } from 'vitest';
import { identify, kindOfPath } from '../../src/core/identity.ts';
import { golden, recordings, type Recording } from '../support/recordings.ts';
import { viewOf } from '../support/view-of.ts';

function identityOf(recording: Recording) {
  const { dialect, headers, body, path } = recording;
  if (dialect === undefined) throw new Error(`${recording.name} has no dialect`);
  const view = viewOf(dialect, body);
  const identity = identify(dialect, headers, view);
  const kind = kindOfPath(path) ?? identity.kind;
  const human = view.items.map((item) => item.humanText).filter((text) => text !== '');
  return {
    client: identity.client,
    kind,
    session: identity.session,
    human: kind === 'main' ? human : [],
  };
}

describe('what real clients sent', () => {
  const expected = golden();
  const recorded = recordings().filter(({ name }) => name in expected);

  test('all of it is read: 249 requests', () => {
    expect(recorded).toHaveLength(249);
    expect(Object.keys(expected)).toHaveLength(249);
  });

  test.each(recorded.map((recording) => [recording.name, recording] as const))(
    '%s',
    (name, recording) => {
      const want = expected[name];
      const got = identityOf(recording);
      // Counting is told by its path, before anybody asks who counts.
      if (want?.kind === 'count') expect(got.kind).toBe('count');
      else expect(got).toEqual(want);
    },
  );
});
