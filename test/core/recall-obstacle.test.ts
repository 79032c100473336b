import { Buffer } from 'node:buffer';
import { expect, test } from 'vitest';
import { viewRequest } from '../support/view-of.ts';
import { recallObstacle } from '../../src/core/shortening/removal.ts';

const messages = [{ role: 'user', content: 'why does the parser drop the last token?' }];
const body = Buffer.from(JSON.stringify({ model: 'm', messages }));
const BRIEF =
  '<svc-memory note="x">\nEarlier sessions here:\n- 2026-05-01: Pin undici 7\n</svc-memory>';
const LINES = '<svc-memory note="x">\n2026-05-01 m_aaaaaaaa:\n- assistant: Fixed.\n</svc-memory>';

test('exchanges leave for what the newest prompt was told, not for a brief that only names sessions', () => {
  const view = viewRequest(body, 'anthropic_messages');
  const item = view?.items[0];
  if (view === undefined || item === undefined) throw new Error('the body was not read');
  const withBlock = (block: string) =>
    recallObstacle(view, {
      placements: [{ item, block, form: 'text', space: 'default', tokens: 40 }],
      state: 'recalled',
    });
  expect(withBlock(LINES)).toBeUndefined();
  expect(withBlock(BRIEF)).toBe('recall_empty');
});
