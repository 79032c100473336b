import { TEXTS } from '../../src/adapters/texts.ts';
import { expect, test } from 'vitest';
import type { Dialect, RequestView } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import type { CompressionMode } from '../../src/core/http/modes.ts';
import { applyEdits } from '../../src/core/plan/item-edits.ts';
import { makePlan, type Shortening, untouchedPlan } from '../../src/core/plan/plan.ts';
import { newestPrompt } from '../../src/core/recall/injections.ts';
import { findOmissions, readExchangeTexts } from '../../src/core/shortening/omissions.ts';
import { groupExchanges } from '../../src/core/conversation/exchanges.ts';
import { replacementsOf, outputsOf } from '../../src/core/shortening/outputs.ts';
import { viewRequest } from '../support/view-of.ts';
import { bodyOf, plainItem } from '../support/plain-chat.ts';
import { longOutput, sessionBody } from '../support/tool-session.ts';

const NOTHING: Shortening = { elided: [], omitted: [], outcome: 'not_worth_it' };

function modesOf(compression: CompressionMode) {
  return { memory: 'read-write', reads: true, writes: true, compression } as const;
}

function viewOf(dialect: Dialect, body: unknown): RequestView {
  const view = viewRequest(Buffer.from(JSON.stringify(body)), dialect);
  if (view === undefined) throw new Error('The body of this test is no request.');
  return view;
}

function toolView(dialect: Dialect): RequestView {
  const rounds = [0, 1, 2].map((at) => {
    const output = longOutput(`r${at}`, 400);
    return { id: `call_${at}`, tool: 'Bash', args: { command: `step ${at}` }, output };
  });
  return viewOf(dialect, sessionBody(dialect, rounds));
}

function shorten(view: RequestView): Shortening {
  const outputs = outputsOf(view).slice(0, 2);
  const style = { outputFolder: undefined, forms: new Map() };
  return { elided: replacementsOf(outputs, style), omitted: [], outcome: 'outputs_left' };
}

function blockIn(view: RequestView) {
  const item = newestPrompt(view);
  if (item === undefined) throw new Error('The body of this test has no prompt.');
  return { item, block: 'what was recalled', form: 'text', space: 'default', tokens: 7 } as const;
}

test.each(DIALECTS)('%s: the plan’s numbers are those of the bytes that leave', (dialect) => {
  const view = toolView(dialect);
  const placements = [blockIn(view)];
  const facts = { view, modes: modesOf('deterministic'), placements, cacheMarks: [] };
  const plan = makePlan({ ...facts, shortening: shorten(view) });
  expect(plan).toMatchObject({
    continuityState: 'elided_tool_output',
    compressionMode: 'deterministic',
    elidedItems: 2,
    recalledTokens: 7,
    originalTokens: view.tokens,
  });
  const sent = viewRequest(Buffer.concat(applyEdits(view.bytes, plan.edits)), dialect);
  expect(Math.abs((sent?.tokens ?? 0) - plan.forwardedTokens)).toBeLessThan(12);
  expect(plan.forwardedTokens).toBe(view.tokens + 7 - plan.elidedTokens);
});

test('shadow measures what deterministic leaves out, and edits nothing', () => {
  const view = toolView('anthropic_messages');
  const facts = { view, placements: [blockIn(view)], cacheMarks: [], shortening: shorten(view) };
  const real = makePlan({ ...facts, modes: modesOf('deterministic') });
  const plan = makePlan({ ...facts, modes: modesOf('shadow') });
  expect(plan).toMatchObject({
    edits: [],
    continuityState: 'shadow_only',
    compressionMode: 'shadow',
    elidedItems: 2,
    elidedTokens: real.elidedTokens,
    forwardedTokens: view.tokens,
    recalledTokens: 0,
  });
});

test('a bypass forwards the whole request with what was recalled', () => {
  const view = toolView('openai_responses');
  const facts = { view, modes: modesOf('deterministic'), cacheMarks: [], shortening: NOTHING };
  const plan = makePlan({ ...facts, placements: [blockIn(view)] });
  expect(plan).toMatchObject({
    continuityState: 'bypassed_not_worth_it',
    compressionMode: 'passthrough',
    elidedItems: 0,
    forwardedTokens: view.tokens + 7,
  });
  expect(makePlan({ ...facts, placements: [] }).edits).toEqual([]);
});

test('a block that stands in an exchange leaves with it', () => {
  const dialect = 'openai_chat_completions';
  const chat = [0, 1, 2, 3].flatMap((at) => [
    plainItem(dialect, 'user', `Which port does staging server number ${at} listen on?`),
    plainItem(dialect, 'assistant', `Staging server number ${at} listens on port ${6000 + at}.`),
  ]);
  const view = viewOf(dialect, bodyOf(dialect, chat));
  const exchanges = groupExchanges(view.items);
  const omitted = findOmissions(view, exchanges, (it) => readExchangeTexts(view, it, TEXTS));
  expect(omitted.length).toBeGreaterThan(0);
  const first = view.items.find(({ humanText }) => humanText !== '');
  if (first === undefined) throw new Error('The body of this test has no prompt.');
  const old = { ...blockIn(view), item: first, block: 'told long ago' };
  const plan = makePlan({
    view,
    modes: modesOf('deterministic'),
    placements: [old, blockIn(view)],
    cacheMarks: [],
    shortening: { elided: [], omitted, outcome: 'exchanges_left' },
  });
  const sent = Buffer.concat(applyEdits(view.bytes, plan.edits)).toString();
  expect(plan).toMatchObject({ continuityState: 'committed', recalledTokens: 7 });
  expect(sent).not.toContain('told long ago');
  expect(sent).not.toContain('server number 0');
  expect(sent).toContain('what was recalled');
});

test.each([
  ['deterministic', 'passthrough', 'bypassed_unparseable'],
  ['shadow', 'shadow', 'shadow_only'],
  ['passthrough', 'passthrough', 'not_applicable'],
] as const)('a body that svc cannot read is left alone in mode %s', (mode, effective, state) => {
  expect(untouchedPlan(modesOf(mode), 9, 'unparseable')).toMatchObject({
    edits: [],
    compressionMode: effective,
    continuityState: state,
    originalTokens: 9,
    forwardedTokens: 9,
  });
});
