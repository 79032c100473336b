import type { AgentLook } from '../../core/recall/agent-facts.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import { strengthNeeded } from '../../core/recall/relevance.ts';
import { GLOBAL_SPACE } from '../../core/request/space.ts';
import type {
  DeskEdit,
  DeskRecord,
  EditState,
  PinChange,
  RecallLook,
  RuleChange,
  WeighedMemory,
} from '../../ports/memory-desk.ts';
import type { MemoryRecord, SpeakerRole } from '../../core/memory/record.ts';
import type { ForgetFilter, RecalledPassage, RecallQuestion } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { Desk } from './desk.ts';
import type { StoreCalls } from './protocol.ts';
import { marksOf } from './recall-marks.ts';
import type { Records } from './records.ts';
import { FileSearch } from './file-search.ts';
import type { Signals } from './signals.ts';

/** The calls by which a person keeps order among the memories. */

type DeskCallName =
  | 'shelves'
  | 'days'
  | 'browse'
  | 'look'
  | 'beginnings'
  | 'rules'
  | 'markRule'
  | 'pin'
  | 'edit'
  | 'restore';

export interface DeskParts {
  readonly database: Database;
  readonly records: Records;
  readonly signals: Signals;
  /** `emptyForgotten` is to follow. */
  readonly forget: (filter: ForgetFilter) => void;
  /** Keeps the blocks that quote it from new conversations. */
  readonly retire: (ref: string) => void;
}

/** More than a person reads; each costs the reading of a text. */
const WEIGHED_MAX = 24;
/** Other projects in which the prompt is tried: the ones that were used last. */
const PROJECTS_MAX = 6;
const FROM_OTHERS_MAX = 2;

export function deskCalls(parts: DeskParts): Pick<StoreCalls, DeskCallName> {
  const { database, records } = parts;
  const desk = new Desk(database);
  const look = new Look(parts, desk);
  return {
    shelves: () => desk.shelves(),
    days: (space) => desk.days(space),
    browse: (filter) => desk.browse(filter),
    look: (question) => look.at(question),
    beginnings: (conversations) => desk.beginnings(conversations),
    rules: (filter) => desk.rules(filter),
    markRule: (change) => markRule(parts, desk, change),
    pin: (change) => pin(parts, desk, change),
    edit: (change) => edit(parts, desk, change),
    restore: (given) => {
      desk.unbury(given);
      const states = records.capture(given.map(recordOf));
      desk.putMarks(given);
      return states.filter((state) => state === 'stored' || state === 'duplicate').length;
    },
  };
}

function pin({ retire }: DeskParts, desk: Desk, change: PinChange): boolean {
  const isPinned = desk.pin(change);
  if (isPinned && change.pin === 'never') retire(change.ref);
  return isPinned;
}

function markRule({ retire }: DeskParts, desk: Desk, change: RuleChange): boolean {
  const marked = desk.markRule(change);
  if (marked !== undefined && change.mark === 'retired') retire(marked.ref);
  return marked !== undefined;
}

/** The new text is held before the old one goes, so that nothing is lost in between. */
function edit({ records, forget }: DeskParts, desk: Desk, change: DeskEdit): EditState {
  const { space, ref, text, at } = change;
  const [old] = desk.browse({ space, refs: [ref], limit: 1 }).records;
  if (old === undefined) return 'gone';
  if (old.digest === text.digest) return 'same';
  desk.takeBack(space, text.digest);
  // Its fingerprint goes: no exchange of the conversation may leave on the proof of other words.
  const [state] = records.capture([{ ...recordOf(old), ...text, fingerprint: '' }]);
  if (state === 'forgotten') return 'forgotten';
  if (state !== 'stored' && state !== 'duplicate') return 'rejected';
  desk.putMarks([{ ...old, digest: text.digest, ref: referenceOf(text.digest), editedAt: at }]);
  forget({ refs: [ref], space });
  desk.allowBack(space, old.digest);
  return 'edited';
}

/** A record without the marks of the desk. */
function recordOf(given: DeskRecord): MemoryRecord<SpeakerRole> {
  const { pin: _, editedAt: __, importedAt: ___, ref: ____, ...record } = given;
  return record;
}

/** Recalls of its own: looking leaves no signal by which later prompts would be judged. */
class Look {
  readonly #desk: Desk;
  readonly #search: FileSearch;
  readonly #unmarked: FileSearch;
  readonly #neverIn: (space: string) => ReadonlySet<string>;

  constructor({ database, signals }: DeskParts, desk: Desk) {
    const silent = { of: (space: number) => signals.of(space), add: () => undefined };
    this.#desk = desk;
    this.#search = new FileSearch(database, silent, marksOf(database));
    this.#unmarked = new FileSearch(database, silent);
    this.#neverIn = (space) =>
      new Set(
        desk.browse({ space, kind: 'never', limit: 500 }).records.map(({ digest }) => digest),
      );
  }

  at(question: RecallQuestion): RecallLook {
    const { agent: _, ...chat } = question;
    const { isQuestion, passages } = this.#unmarked.weigh(chat, WEIGHED_MAX);
    const added = new Set(this.#search.recall(chat).passages.map(({ digest }) => digest));
    const never = this.#neverIn(question.space);
    let agent: AgentLook | undefined;
    const { exchanges = [] } = this.#search.recall(question, undefined, (look) => (agent = look));
    const weighed = passages.map(({ isKept, ...passage }): WeighedMemory => {
      const { digest } = passage;
      if (never.has(digest)) return weighedOf(passage, 'never');
      if (added.has(digest)) return weighedOf(passage, 'added');
      return weighedOf(passage, isKept ? 'no_room' : 'weak');
    });
    return {
      isQuestion,
      needed: strengthNeeded(isQuestion),
      // Recall itself places newer texts and other sayings higher: a person sees the score, and its order.
      weighed: [...weighed, ...this.#fromOthers(chat)].toSorted((a, b) => b.score - a.score),
      exchanges,
      agent,
    };
  }

  #fromOthers(chat: RecallQuestion): readonly WeighedMemory[] {
    const others = this.#desk
      .shelves()
      .map(({ space }) => space)
      .filter((space) => space !== chat.space && space !== GLOBAL_SPACE)
      .slice(0, PROJECTS_MAX);
    return others.flatMap((space) =>
      this.#search
        .weigh({ ...chat, space, olderSpaces: [] }, WEIGHED_MAX)
        .passages.filter((one) => one.isKept && one.space === space)
        .slice(0, FROM_OTHERS_MAX)
        .map((one) => weighedOf(one, 'other_project')),
    );
  }
}

function weighedOf(
  { ref, space, role, text, at, client, score }: RecalledPassage,
  verdict: WeighedMemory['verdict'],
): WeighedMemory {
  return { ref, space, role, text, at, client, score, verdict };
}
