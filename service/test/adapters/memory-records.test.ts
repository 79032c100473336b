import { expect, onTestFinished, test } from 'vitest';
import { Records } from '../../src/adapters/memory/records.ts';
import { Spaces } from '../../src/adapters/memory/spaces.ts';
import type { Rows } from '../../src/ports/rows.ts';
import { questionTo } from '../support/service-objects.ts';

test('a connection that ends during a recall without candidates ends no process', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  const gone = () => Promise.reject(new Error('Connection terminated unexpectedly'));
  const rows: Rows = { all: gone, get: gone, run: gone, each: gone };
  const spaces = new Spaces(rows, 'default');
  const stating = spaces.state('global');
  const question = questionTo({ humanText: 'Which port?' });
  const proving = new Records(rows, 'default', spaces).prove(question, stating);
  await expect(Promise.all([stating, proving])).rejects.toThrow('terminated');
  await new Promise(setImmediate);
  expect(unhandled).toEqual([]);
});
