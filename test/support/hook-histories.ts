import * as fc from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DELIVERIES,
  type Delivery,
  HookedSession,
  HookedWorld,
  type Kept,
} from './hooked-session.ts';

/** Random histories of one client with svc's hooks, as data: a failure can be repeated and made shorter. */

export type HookStep =
  | { readonly kind: 'begin' | 'restart' | 'lock' | 'late' }
  | {
      readonly kind: 'ask';
      readonly on: number;
      /** What the assistant says between its tools: '' says nothing. */
      readonly between: readonly boolean[];
      /** The answer repeats what an earlier session knows, says something new, or both. */
      readonly answer: 'news' | 'echo' | 'both';
      readonly lagMs: number;
      readonly isTwice: boolean;
    }
  | { readonly kind: 'interrupt' | 'compact' | 'fork' | 'resume' | 'end'; readonly on: number }
  | { readonly kind: 'rewind'; readonly on: number; readonly by: number };

const on = fc.nat(7);

export function hookHistory(): fc.Arbitrary<readonly HookStep[]> {
  const ask = fc.record({
    kind: fc.constant('ask' as const),
    on,
    between: fc.array(fc.boolean(), { maxLength: 3 }),
    answer: fc.constantFrom('news' as const, 'echo' as const, 'both' as const),
    lagMs: fc.constantFrom(0, 0, 0, 0, 40, 120),
    isTwice: fc.boolean(),
  });
  const event = fc.record({
    kind: fc.constantFrom(
      'interrupt' as const,
      'compact' as const,
      'fork' as const,
      'resume' as const,
      'end' as const,
    ),
    on,
  });
  const rewind = fc.record({ kind: fc.constant('rewind' as const), on, by: fc.nat(3) });
  const plain = fc.record({
    kind: fc.constantFrom('begin' as const, 'restart' as const, 'lock' as const, 'late' as const),
  });
  const step = fc.oneof(
    { weight: 12, arbitrary: ask },
    { weight: 4, arbitrary: event },
    { weight: 1, arbitrary: rewind },
    { weight: 3, arbitrary: plain },
  );
  return fc.array(step, { minLength: 20, maxLength: 40, size: 'max' });
}

export interface HookCounts {
  prompts: number;
  records: number;
  /** Answers of a model that had read something of svc. */
  heard: number;
  /** Those of which svc keeps a part, because a block had said the rest. */
  cut: number;
}

/** What is wrong with the memories after this history; [] where nothing is. */
export async function playHistory(
  steps: readonly HookStep[],
  counts: HookCounts,
): Promise<readonly string[]> {
  const plays = DELIVERIES.map((delivery) => new Play(delivery));
  // oxlint-disable-next-line no-await-in-loop -- Each has stores and sockets of its own.
  for (const play of plays) await play.run(steps);
  counts.prompts += plays[0]?.said.length ?? 0;
  counts.records += plays.reduce((sum, { records }) => sum + records, 0);
  const kept = plays.flatMap(({ said }) => said);
  counts.heard += kept.filter(({ blocks }) => blocks > 0).length;
  counts.cut += kept.filter(({ answer, whole }) => answer !== '' && !answer.includes(whole)).length;
  return plays.flatMap(({ faults }) => faults);
}

const NAMES = 'Lindau Bregenz Konstanz Rorschach Arbon Romanshorn Meersburg Friedrichshafen'.split(
  ' ',
);
const THINGS = 'crane dock ferry lighthouse customs shed winch'.split(' ');

/** The fact with this number; no two share a name and a number. */
function factOf(number: number): string {
  const name = NAMES[number % NAMES.length] ?? '';
  const thing = THINGS[number % THINGS.length] ?? '';
  return `The ${thing} of ${name} has the register number ${4_000 + number}.`;
}

function questionAbout(number: number, ask: number): string {
  const name = NAMES[number % NAMES.length] ?? '';
  const thing = THINGS[number % THINGS.length] ?? '';
  return `Which register number does the ${thing} of ${name} have, for list ${ask}?`;
}

const FACTS = 8;

/** What is kept of an exchange, with the answer as the model said it. */
type Exchange = Kept & { readonly whole: string };

/** One history on one data folder. */
class Play {
  readonly delivery: Delivery;
  readonly said: Exchange[] = [];
  records = 0;
  faults: readonly string[] = [];
  readonly #world: HookedWorld;
  #sessions: HookedSession[] = [];
  #ids = 0;
  #unlock: (() => void) | undefined;

  constructor(delivery: Delivery) {
    this.delivery = delivery;
    this.#world = new HookedWorld(delivery);
  }

  async run(steps: readonly HookStep[]): Promise<void> {
    try {
      for (let number = 0; number < FACTS; number += 1) {
        const session = this.#newSession();
        const answer = `Noted: ${factOf(number)}`;
        // oxlint-disable-next-line no-await-in-loop -- One step after the other.
        const kept = await session.say({ prompt: factOf(number), answer });
        this.said.push({ ...kept, whole: answer });
        // oxlint-disable-next-line no-await-in-loop
        await session.end();
      }
      this.#sessions = [];
      // oxlint-disable-next-line no-await-in-loop
      for (const step of steps) await this.#take(step);
      // oxlint-disable-next-line no-await-in-loop
      for (const session of this.#sessions) await session.end();
      await this.#compare();
    } finally {
      this.#unlock?.();
      await this.#world.restart();
    }
  }

  async #compare(): Promise<void> {
    const records = await this.#world.records();
    this.records = records.length;
    const expected = new Map<string, Kept>();
    for (const kept of this.said) {
      for (const text of [`user: ${kept.human}`, `assistant: ${kept.answer}`]) {
        // The same words are one memory, of the first session that said them.
        if (!text.endsWith(': ') && !expected.has(text)) expected.set(text, kept);
      }
    }
    const found = new Map(records.map((record) => [`${record.role}: ${record.text}`, record]));
    const faults = [...found.keys()]
      .filter((text) => !expected.has(text))
      .map((text) => `added ${text}`);
    for (const [text, { session, exchange }] of expected) {
      const record = found.get(text);
      const place = `${record?.conversation} ${exchange === undefined ? '' : record?.exchange}`;
      if (record === undefined) faults.push(`lost ${text}`);
      else if (place !== `${session} ${exchange ?? ''}`)
        faults.push(`at ${place}, not ${session} ${exchange}: ${text}`);
      else if (record.client !== 'claude-code' || record.source !== undefined)
        faults.push(`of unknown origin ${text}`);
    }
    const others = new Set(records.map(({ space }) => space));
    if (others.size > 1) faults.push(`in several spaces: ${[...others].join(' ')}`);
    this.faults = faults.map((fault) => `${this.delivery}: ${fault}`);
  }

  #newSession(): HookedSession {
    this.#ids += 1;
    const session = new HookedSession(this.#world, `session-${this.#ids}-of-this-history`);
    this.#sessions.push(session);
    return session;
  }

  #session(at: number): HookedSession | undefined {
    return this.#sessions[at % Math.max(1, this.#sessions.length)];
  }

  async #take(step: HookStep): Promise<void> {
    switch (step.kind) {
      case 'begin':
        return this.#newSession().begin();
      case 'restart':
        this.#unlock?.();
        return this.#world.restart();
      case 'late':
        this.#world.isHookLate = this.delivery === 'both';
        return undefined;
      case 'lock':
        return this.#lock();
      case 'ask':
        return this.#ask(step);
      case 'interrupt': {
        const mark = this.#mark();
        const prompt = `Please count the boats at the pier with number ${mark}, slowly.`;
        const kept = await this.#session(step.on)?.interrupt(prompt);
        if (kept !== undefined) this.said.push({ ...kept, whole: '' });
        return undefined;
      }
      case 'compact':
        return this.#session(step.on)?.compact(SUMMARY);
      case 'fork': {
        this.#ids += 1;
        const fork = await this.#session(step.on)?.fork(`session-${this.#ids}-of-this-history`);
        if (fork !== undefined) this.#sessions.push(fork);
        return undefined;
      }
      case 'resume':
        return this.#session(step.on)?.begin('resume');
      case 'end':
        return this.#session(step.on)?.end();
      case 'rewind': {
        const session = this.#session(step.on);
        session?.rewind(Math.max(0, session.prompts - 1 - step.by));
      }
    }
  }

  /** Another program writes for a while, longer than a hook waits. */
  #lock(): void {
    this.#unlock?.();
    let isLocked = true;
    const end = this.#world.lock();
    const unlock = (): void => {
      if (isLocked) end();
      isLocked = false;
    };
    this.#unlock = unlock;
    void sleep(LOCK_MS).then(unlock);
  }

  #mark(): string {
    this.#ids += 1;
    return String(70_000 + this.#ids);
  }

  async #ask(step: HookStep & { readonly kind: 'ask' }): Promise<void> {
    const session = this.#session(step.on) ?? this.#newSession();
    const mark = this.#mark();
    const about = Number(mark) % FACTS;
    const prompt = questionAbout(about, Number(mark));
    const answerMark = this.#mark();
    const news = `I have written pier ${answerMark} into the list of the port office.`;
    const echo = `As noted, ${factOf(about)}`;
    const answer =
      step.answer === 'news' ? news : step.answer === 'echo' ? echo : `${echo} ${news}`;
    const between = step.between.map((says, at) => (says ? `I open page ${at} of it.` : ''));
    const { lagMs, isTwice } = step;
    const kept = await session.say({ prompt, answer, between, lagMs, isTwice });
    this.said.push({ ...kept, whole: answer });
    await this.#world.settle();
  }
}

const LOCK_MS = 150;
const SUMMARY =
  'This session is being continued from a previous conversation that ran out of context. It was about piers.';
