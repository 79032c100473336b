import { describe, expect, test } from 'vitest';
import { AnswerReader } from '../../src/core/answer/answer-reader.ts';
import {
  planLimitOf,
  quotaInEvent,
  type QuotaReading,
  type QuotaRow,
  quotaRowOf,
  readQuota,
  reportQuota,
} from '../../src/core/meter/quota.ts';
import { planLimitText, windowText } from '../../src/core/meter/quota-words.ts';

/** Header names and values as public proxies and Codex's source had them in 2026-11. */

const NOW = Date.UTC(2026, 10, 24, 12);
const SECONDS = NOW / 1000;
const HOUR = 3_600_000;
const U = 'anthropic-ratelimit-unified-';

function claude(facts: Readonly<Record<string, string>>): QuotaReading | undefined {
  return readQuota(
    Object.entries(facts).flatMap(([name, value]) => [`${U}${name}`, value]),
    NOW,
  );
}

const USUAL = {
  status: 'allowed',
  'representative-claim': 'five_hour',
  '5h-utilization': '0.42',
  '5h-reset': String(SECONDS + 7_200),
  '5h-status': 'allowed',
  '7d-utilization': '0.17',
  '7d-reset': String(SECONDS + 400_000),
  'fallback-percentage': '0.5',
  'overage-status': 'rejected',
};

test('the event of Codex is read from an answer among its other events', () => {
  const reader = new AnswerReader('openai_responses', {
    contentType: 'text/event-stream',
    textCharsMax: 100,
  });
  const event = {
    type: 'codex.rate_limits',
    rate_limits: { primary: { used_percent: 5, window_minutes: 300 } },
  };
  reader.push(Buffer.from(`data: ${JSON.stringify(event)}\n\ndata: {"type":"ping"}\n\n`));
  const windows = quotaInEvent(reader.finish().limits ?? {}, NOW)?.windows;
  expect(windows).toEqual([{ name: '5h', share: 0.05 }]);
});

describe('what headers state', () => {
  test('Claude: both windows with their reset, and the one that decides', () => {
    expect(claude(USUAL)).toEqual({
      provider: 'claude',
      status: 'allowed',
      deciding: '5h',
      windows: [
        { name: '5h', share: 0.42, resetAt: NOW + 2 * HOUR },
        { name: '7d', share: 0.17, resetAt: NOW + 400_000_000 },
      ],
    });
  });

  test('a share above 1 is full, and an unknown window is a window', () => {
    const read = claude({
      '7d_oi-status': 'rejected',
      '7d_oi-utilization': '1.02',
      '3d-utilization': '0.5',
    });
    expect(read?.windows).toEqual([
      { name: '7d_oi', share: 1, isRejected: true },
      { name: '3d', share: 0.5 },
    ]);
  });

  test('Codex: windows are named by their length, and one of 0 percent alone is none', () => {
    const headers = [
      'x-codex-primary-used-percent',
      '37',
      'x-codex-primary-window-minutes',
      '300',
      'x-codex-primary-reset-at',
      String(SECONDS + 60),
      'X-Codex-Secondary-Used-Percent',
      '12.5',
      'x-codex-secondary-window-minutes',
      '10080',
      'x-codex-bengalfox-primary-used-percent',
      '4',
      'x-codex-bengalfox-primary-window-minutes',
      '300',
      'x-other-primary-used-percent',
      '0',
      'x-codex-promo-message',
      'Buy more',
    ];
    expect(readQuota(headers, NOW)).toEqual({
      provider: 'codex',
      windows: [
        { name: '5h', share: 0.37, resetAt: NOW + 60_000 },
        { name: '7d', share: 0.125 },
        { name: '5h bengalfox', share: 0.04 },
      ],
    });
  });

  test('Codex: the event of a stream states the same', () => {
    const primary = { used_percent: 37, window_minutes: 300, reset_at: SECONDS + 60 };
    const event = {
      type: 'codex.rate_limits',
      plan_type: 'plus',
      rate_limits: { primary, secondary: null },
    };
    const windows = [{ name: '5h', share: 0.37, resetAt: NOW + 60_000 }];
    expect(quotaInEvent(event, NOW)).toEqual({ provider: 'codex', windows });
    expect(quotaInEvent({ ...event, type: 'response.created' }, NOW)).toBeUndefined();
  });

  test.each([
    ['NaN', 'NaN'],
    ['1e309', '1e309'],
    ['negative', '-0.5'],
    ['hexadecimal', '0x10'],
    ['10 kB', '9'.repeat(10_240)],
    ['empty', ''],
    ['Infinity', 'Infinity'],
    ['two', '0.1, 0.2'],
    ['a control character', '0.5\u0000'],
  ])('a hostile value (%s) is absent, and the others stay', (_, value) => {
    const read = claude({ ...USUAL, '5h-utilization': value, '7d-reset': value });
    expect(read?.windows).toEqual([{ name: '7d', share: 0.17 }]);
    expect(claude({ '5h-utilization': value })).toBeUndefined();
    const limits = { primary: { used_percent: Number(value), reset_at: Number.NaN } };
    const event = quotaInEvent({ type: 'codex.rate_limits', rate_limits: limits }, NOW);
    for (const { share } of event?.windows ?? []) expect(share).toBeLessThanOrEqual(1);
  });

  test('a reset of another time is absent, and so are windows beyond a dozen', () => {
    for (const reset of ['0', '99999999999', String(SECONDS + 50 * 86_400)]) {
      const read = claude({ '5h-utilization': '0.5', '5h-reset': reset });
      expect(read?.windows).toEqual([{ name: '5h', share: 0.5 }]);
    }
    const many = Array.from({ length: 90 }, (_, at) => [`${at + 1}h-utilization`, '0.1']);
    expect(claude(Object.fromEntries(many))?.windows).toHaveLength(12);
  });
});

test('a refusal names the window and the model, and leaves other refusals alone', () => {
  const read = claude({ ...USUAL, '7d_oi-status': 'rejected', '7d_oi-utilization': '1.02' });
  const limit = planLimitOf(429, read);
  expect(limit).toEqual({ window: '7d_oi' });
  expect(planLimitText({ window: '7d_oi' }, 'claude-fable-5-2')).toBe(
    'the weekly window of one kind of model (oi) is used up for claude-fable-5-2. Other models may still be allowed.',
  );
  expect(planLimitOf(200, read)).toBeUndefined();
  expect(planLimitOf(429, claude(USUAL))).toBeUndefined();
  expect([windowText('5h'), windowText('30d'), windowText('odd')]).toEqual([
    '5-hour window',
    '30-day window',
    'window odd',
  ]);
});

test('a login is a keyed hash of the account that headers state, never of a token', () => {
  const row = { at: NOW, client: 'c', space: 's', conversation: 'k', model: 'm' };
  const facts = (asked: string[], answered: string[]): Parameters<typeof quotaRowOf>[0] => ({
    request: { headers: ['authorization', 'Bearer secret', ...asked] },
    head: { headers: [`${U}5h-utilization`, '0.1', ...answered] },
    answer: undefined,
    row,
  });
  const one = quotaRowOf(facts([], ['anthropic-organization-id', 'org-1']), () => 'key');
  const same = quotaRowOf(
    facts(['authorization', 'Bearer other'], ['anthropic-organization-id', 'org-1']),
    () => 'key',
  );
  const other = quotaRowOf(facts([], ['anthropic-organization-id', 'org-2']), () => 'key');
  expect(one?.login).toMatch(/^[\w-]{12}$/);
  expect(same?.login).toBe(one?.login);
  expect(other?.login).not.toBe(one?.login);
  expect(
    quotaRowOf(facts([], ['anthropic-organization-id', 'org-1']), () => 'key 2')?.login,
  ).not.toBe(one?.login);
  expect(
    quotaRowOf(facts([], ['anthropic-organization-id', 'org-1']), () => undefined)?.login,
  ).toBe('');
  expect(quotaRowOf(facts([], []), () => 'key')?.login).toBe('');
  expect(quotaRowOf({ ...facts([], []), head: undefined }, () => 'key')).toBeUndefined();
});

const END = NOW + 3 * HOUR;

function readingAt(
  minutes: number,
  share: number,
  extra: Partial<QuotaRow> & { readonly resetAt?: number } = {},
): QuotaRow {
  const { resetAt = END, ...others } = extra;
  const windows = [{ name: '5h', share, resetAt }];
  return {
    at: NOW + minutes * 60_000,
    login: 'a',
    reading: { provider: 'claude', windows, deciding: '5h' },
    client: 'claude-code',
    space: 'shop',
    conversation: 'c1',
    model: 'opus',
    ...others,
  };
}

describe('a report', () => {
  const at = NOW + 61 * 60_000;

  test('says until when a window lasts at this pace, or that it lasts until the reset', () => {
    const [report] = reportQuota([readingAt(0, 0.2), readingAt(30, 0.4), readingAt(60, 0.6)], at);
    expect(report?.windows[0]?.fullAt).toBe(NOW + 120 * 60_000);
    const [slow] = reportQuota([readingAt(0, 0.2), readingAt(60, 0.22)], at);
    expect(slow?.windows[0]?.fullAt).toBe(Infinity);
    const [idle] = reportQuota([readingAt(0, 0.2), readingAt(60, 0.2)], at);
    expect(idle?.windows[0]?.fullAt).toBeUndefined();
    const [short] = reportQuota([readingAt(0, 0.2), readingAt(5, 0.3)], at);
    expect(short?.windows[0]?.fullAt).toBeUndefined();
  });

  test('gives no time that is past, and no pace of an hour that is long over', () => {
    const rows = [readingAt(0, 0.2), readingAt(30, 0.6), readingAt(60, 0.96)];
    const fullAt = (minutes: number): number | undefined =>
      reportQuota(rows, NOW + minutes * 60_000)[0]?.windows[0]?.fullAt;
    expect(fullAt(61)).toBeGreaterThan(NOW + 61 * 60_000);
    expect(fullAt(90)).toBeUndefined();
    const slow = reportQuota([readingAt(0, 0.2), readingAt(60, 0.4)], NOW + 150 * 60_000);
    expect(slow[0]?.windows[0]?.fullAt).toBeUndefined();
  });

  test('gives a range of who moved it: between its own requests, and beside those of others', () => {
    const other = { space: 'docs', conversation: 'c2' };
    const rows = [
      readingAt(0, 0.1),
      readingAt(1, 0.13),
      readingAt(2, 0.15, other),
      readingAt(3, 0.2, other),
      readingAt(4, 0.2),
    ];
    const movers = reportQuota(rows, at)[0]?.windows[0]?.movers.space ?? [];
    const near = movers.map(({ name, low, high, requests }) => {
      return [name, Math.round(low * 100), Math.round(high * 100), requests];
    });
    expect(near).toEqual([
      ['docs', 5, 7, 2],
      ['shop', 3, 5, 3],
    ]);
  });

  test('keeps two logins of a day apart, the newest first', () => {
    const rows = [
      readingAt(0, 0.1),
      readingAt(1, 0.9, { login: 'b' }),
      readingAt(2, 0.2),
      readingAt(3, 0.95, { login: 'b' }),
    ];
    const reports = reportQuota(rows, at);
    expect(reports.map(({ login, windows }) => [login, windows[0]?.share])).toEqual([
      ['b', 0.95],
      ['a', 0.2],
    ]);
  });

  test('begins anew when a window has reset, and says that one has reset since', () => {
    const later = { resetAt: END + 5 * HOUR };
    const rows = [readingAt(0, 0.9), readingAt(10, 0.01, later), readingAt(50, 0.06, later)];
    const window = reportQuota(rows, at)[0]?.windows[0];
    expect(window?.movers.space[0]?.high).toBeCloseTo(0.05);
    expect(reportQuota([readingAt(0, 0.9)], END + 1)[0]?.windows[0]).toMatchObject({
      isOver: true,
    });
  });

  test('marks a window that the newest answers do not state', () => {
    const without = (minutes: number): QuotaRow => ({
      ...readingAt(minutes, 0.2),
      reading: { provider: 'claude', windows: [{ name: '7d', share: 0.1 }] },
    });
    const reports = reportQuota([readingAt(0, 0.5), without(1), without(2), without(3)], at);
    const [gone, there] = reports[0]?.windows ?? [];
    expect([gone?.name, gone?.isGone, there?.name, there?.isGone]).toEqual([
      '5h',
      true,
      '7d',
      false,
    ]);
  });

  test('a clock that jumps back an hour keeps the window, its reset and who used it', () => {
    const rows = [readingAt(0, 0.2), readingAt(-60, 0.3), readingAt(-50, 0.4, { space: 'docs' })];
    const window = reportQuota(rows, at)[0]?.windows[0];
    expect(window).toMatchObject({ share: 0.4, resetAt: END, isOver: false, isGone: false });
    const moved = window?.movers.space.map(({ name, high }) => [name, Math.round(high * 100)]);
    expect(moved).toEqual([
      ['shop', 20],
      ['docs', 10],
    ]);
  });

  test('a reset that is past already says that the window is over, in whatever hour', () => {
    const past = readingAt(0, 0.9, { resetAt: NOW - HOUR });
    expect(reportQuota([past], at)[0]?.windows[0]).toMatchObject({ isOver: true });
  });

  test('a clock that jumps makes no pace, and no number that is none', () => {
    for (const rows of [
      [readingAt(0, 0.2), readingAt(-500_000, 0.4), readingAt(1, 0.5)],
      [readingAt(0, 0.2), readingAt(500_000, 0.9)],
      [readingAt(60, 0.2), readingAt(0, 0.4)],
    ]) {
      const window = reportQuota(rows, at)[0]?.windows[0];
      const { fullAt = 0 } = window ?? {};
      expect(Number.isNaN(fullAt)).toBe(false);
      for (const { low, high } of window?.movers.space ?? []) {
        expect(low).toBeLessThanOrEqual(high);
        expect(high).toBeLessThanOrEqual(1);
      }
    }
    expect(
      reportQuota([readingAt(0, 0.2), readingAt(500_000, 0.9)], at)[0]?.windows[0]?.fullAt,
    ).toBeUndefined();
  });
});
