import { hash, randomUUID } from 'node:crypto';
import { fitsHook, hookAnswer } from '../core/hooks/hook-answer.ts';
import { hookClient } from '../core/hooks/hook-clients.ts';
import { readHookEvent } from '../core/hooks/hook-event.ts';
import type { HookQuestion, HookRequest } from '../core/hooks/hook-question.ts';
import { questionOf } from '../core/hooks/session-view.ts';
import { proxyBlockAddress } from '../core/hooks/hook-texts.ts';
import { type AddressOf, type EntryOf, LOCAL_TENANT } from '../core/ledger/entries.ts';
import {
  type Placed,
  roomForBlock,
  roomForLook,
  roomLeft,
  BRIEF_TOKENS_MAX,
  QUESTION_CHARS_MAX,
  limitsOfBlock,
} from '../core/recall/injections.ts';
import { quietShareAt } from '../core/recall/running-share.ts';
import { wordsOf } from '../core/recall/second-look.ts';
import { estimateTextTokens } from '../core/bytes/tokens.ts';
import type { Project } from '../ports/projects.ts';
import type { AgentFacts, Memory, RecallQuestion } from '../ports/memory.ts';
import type { ProxyDependencies } from './dependencies.ts';
import { Deadline } from './deadline.ts';
import type { QuotedAnswer, Texts, WrittenBlock } from '../ports/texts.ts';
import { aroundPrompt, checkAnswer, marked, RecallGuard } from './recall.ts';

/**
 * Answers a client's hooks with the text that the proxy would place beside a prompt. A running proxy uses it, and so
 * does `svc hook`, which opens the store itself if no proxy runs. The client stores the text in its transcript and
 * sends it with every later request, so the ledger records which blocks a session has. Nothing here throws.
 */

interface HookDependencies extends Pick<
  ProxyDependencies,
  'ledger' | 'clock' | 'code' | 'settings' | 'texts'
> {
  readonly memory: Memory;
  readonly projects: NonNullable<ProxyDependencies['projects']>;
  /** Returns the secret with which hooks mark their texts. Without it svc answers hooks with nothing. */
  readonly hookKey: () => string | undefined;
  /** Deadline of an answer in milliseconds; undefined: ANSWER_MS. */
  readonly answerMs?: number | undefined;
}

/** Returns the recalled texts (blocks) that the proxy added to this prompt, or to the tool loop after it. */
export type PlacedAt = (prompt: string) => readonly string[];

const FORMS = ['prompt', 'look'] as const;

/** Deadline for the answer to a hook, in milliseconds. The user waits for it, and for the hook's process as well. */
const ANSWER_MS = 700;
/**
 * Most tokens of the list of earlier sessions at a session's start: two sessions, because no prompt shows yet which
 * ones matter. The first prompt may get a longer list.
 */
const START_BRIEF_TOKENS = 88;
/** Attempts to write a block within the byte limit of a hook, each with a quarter fewer tokens than the one before. */
const FITS_MAX = 6;
/**
 * Bound on the blocks of a session that are read, oldest first. Hardly any session gets so many between compactions.
 */
const BLOCKS_MAX = 32;

/** What svc has given to a session since the session began or was last compacted. */
interface Session {
  /** The number of compactions. */
  readonly epoch: number;
  /** When the session was last compacted, in milliseconds since 1970; 0 if never. */
  readonly since: number;
  /** The number of recalled texts (blocks) that the session has got since it began or was last compacted. */
  readonly blocks: number;
  /** The number of prompts in the whole session. */
  readonly prompts: number;
}

const NEW_SESSION: Session = { epoch: 0, since: 0, blocks: 0, prompts: 0 };

export class HookMemory {
  readonly #dependencies: HookDependencies;
  readonly #guard: RecallGuard;
  readonly #answerMs: number;

  constructor(dependencies: HookDependencies) {
    this.#answerMs = dependencies.answerMs ?? ANSWER_MS;
    this.#dependencies = dependencies;
    this.#guard = new RecallGuard(dependencies.memory, dependencies.clock);
  }

  /** Returns what the hook prints; '' for nothing. */
  async answer({ client: name, event: named, input, folder, tail }: HookRequest): Promise<string> {
    try {
      const client = hookClient(name);
      const event = client && readHookEvent(client, named, { value: input, folder });
      if (client === undefined || event === undefined) return '';
      const question = questionOf(client, event, tail);
      if (question === undefined) return '';
      return hookAnswer(client, event, await this.#answer(question));
    } catch {
      return '';
    }
  }

  /**
   * Returns the blocks that a session has got since its last compaction, so that svc does not store what an answer
   * repeats of them; none if the ledger does not answer.
   */
  async blocksOf(session: string): Promise<readonly string[]> {
    const deadline = new Deadline(this.#dependencies.clock, this.#answerMs);
    const known = await this.#sessionOf({ session }, deadline);
    const placed = known && (await this.#placedIn({ session }, known, deadline));
    return placed?.map(({ block }) => block) ?? [];
  }

  /** Looks up the blocks that a proxy added at these prompts, if the session's requests also go through one. */
  async placedAt(session: string, prompts: readonly string[]): Promise<PlacedAt> {
    const owner = { tenant: LOCAL_TENANT, conversation: session };
    const addresses = prompts.flatMap((text) =>
      FORMS.map((form) => ({ text, address: proxyBlockAddress(owner, text, form) })),
    );
    const asked = addresses.map(({ address }) => address);
    const found = await this.#dependencies.ledger.find(asked, this.#answerMs);
    return (prompt) =>
      addresses.flatMap(({ text, address }) => {
        const block = text === prompt ? found.get(address)?.block : undefined;
        return block === undefined || block === '' ? [] : [block];
      });
  }

  async #answer(question: HookQuestion): Promise<string> {
    const { clock, hookKey, memory, settings } = this.#dependencies;
    const deadline = new Deadline(clock, this.#answerMs);
    const { memoryMode } = settings();
    const mayRead = memoryMode === 'read' || memoryMode === 'read-write';
    const key = hookKey();
    if (key === undefined || !mayRead || !memory.supports.read || question.folder === '') return '';
    if (!(await this.#claims(question, deadline))) return '';
    const session = await this.#sessionOf(question, deadline);
    if (session === undefined) return '';
    if (question.kind === 'compacted') {
      const { epoch, prompts } = session;
      await this.#note(question, { ...NEW_SESSION, epoch: epoch + 1, since: clock.now(), prompts });
      return '';
    }
    const prompts = session.prompts + (question.kind === 'prompt' ? 1 : 0);
    const counted = { ...session, prompts };
    const said = await this.#say(question, { session, deadline, key });
    if (said === undefined) {
      if (question.kind === 'prompt') await this.#note(question, counted);
      return '';
    }
    const { block, entry } = said;
    const next = { ...counted, blocks: session.blocks + 1 };
    // If these entries cannot be written, returns nothing, because a later event would repeat the text.
    const isKnown = await this.#dependencies.ledger.commit([entry, this.#noteOf(question, next)]);
    return isKnown ? block.text : '';
  }

  async #say(
    question: HookQuestion,
    { session, deadline, key }: { session: Session; deadline: Deadline; key: string },
  ): Promise<{ block: WrittenBlock; entry: EntryOf<'own-block'> } | undefined> {
    const { memory, ledger, code, projects, settings, texts } = this.#dependencies;
    const { recalledTokensMax, secondLook } = settings();
    const isLook = question.kind === 'look';
    const isHosted = memory.supports.kind === 'hosted';
    const looks = isHosted ? secondLook === 'hosted' : secondLook !== 'off';
    if (isLook && (!looks || question.action === undefined)) return undefined;
    const generation = ledger.generation();
    const placed = await this.#placedIn(question, session, deadline);
    if (placed === undefined) return undefined;
    const room = isLook
      ? roomForLook(placed, recalledTokensMax)
      : roomForBlock(placed, recalledTokensMax);
    if (room === undefined) return undefined;
    const project = await projects.find(question.folder);
    if (project.isMemoryOff === true) return undefined;
    const asked = await this.#question(question, { session, room, project });
    const { answer: found, state } = await this.#guard.recall(asked, deadline.msLeft);
    if (state !== 'recalled') return undefined;
    const { prompt: humanText, action } = question;
    const about = action === undefined ? found : texts.aboutAction(found, action, humanText);
    const workplace =
      project.root === undefined ? undefined : { folder: question.folder, root: project.root };
    const answer = await checkAnswer(about, {
      workplace,
      code: code?.reader,
      withinMs: deadline.msLeft / 2,
    });
    // If the generation has changed during the recall, mostly because texts were forgotten, the answer may quote one.
    if (ledger.generation() !== generation) return undefined;
    const told = placed.map(({ block }) => block).filter((block) => block !== '');
    const block = blockThatFits(answer, {
      texts,
      room,
      left: roomLeft(placed, recalledTokensMax),
      isLook,
      told,
      key,
    });
    if (block.text === '') return undefined;
    const fingerprint = blockName(session, session.blocks);
    const entry = {
      ...addressIn(question, fingerprint),
      kind: 'own-block',
      block: block.text,
      form: isLook ? 'part' : 'text',
      space: project.space,
      quoted: block.quoted,
      at: this.#dependencies.clock.now(),
    } as const;
    return { block, entry };
  }

  async #question(
    asked: HookQuestion,
    { session, room, project }: { session: Session; room: number; project: Project },
  ): Promise<RecallQuestion> {
    const { clock, memory, settings, texts } = this.#dependencies;
    const { kind, session: conversation, prompt, isOpening, action } = asked;
    const { recallQuietPercent, sessionBrief } = settings();
    const { space, olderSpaces, branch = '' } = project;
    const mayBrief = sessionBrief && isOpening && session.prompts === 0 && session.epoch === 0;
    const most = kind === 'start' ? START_BRIEF_TOKENS : BRIEF_TOKENS_MAX;
    const briefTokensMax = mayBrief && kind !== 'look' ? most : 0;
    const agent: AgentFacts = {
      conversation,
      branch,
      files: asked.files,
      quietShare: quietShareAt(recallQuietPercent / 100, session.prompts),
      briefTokensMax,
      ...(action !== undefined && { action }),
    };
    // For a second look (second-look.ts) a memory service gets no text of the session but the words of the agent's
    // action: no prompt, no answer, and no facts about the agent.
    const isWordsOnly = action !== undefined && memory.supports.kind === 'hosted';
    return {
      space,
      olderSpaces,
      humanText: texts.questionText(isWordsOnly ? wordsOf(action) : prompt, QUESTION_CHARS_MAX),
      assistantText: isWordsOnly ? '' : aroundPrompt(texts, asked.answer, asked.around),
      excludeDigests: [...asked.held, ...(await this.#saidIn(conversation, session.since))],
      tokensMax: room,
      now: clock.now(),
      ...(!isWordsOnly && { agent }),
    };
  }

  /**
   * Returns the digests of the newest stored texts of this session since `since`, which the client still sends itself;
   * none with a memory service.
   */
  async #saidIn(conversation: string, since: number): Promise<readonly string[]> {
    const { memory } = this.#dependencies;
    if (memory.supports.kind === 'hosted') return [];
    const said = await memory.list(
      { conversation, since, limit: SAID_MAX },
      AbortSignal.timeout(this.#answerMs),
    );
    return said.map(({ digest }) => digest);
  }

  /**
   * Says whether this is the first hook call for its event, or for a second look, the first one after the prompt. True
   * without a claim for a session's start, a compaction, and a prompt without an `occasion`.
   */
  async #claims(question: HookQuestion, deadline: Deadline): Promise<boolean> {
    const { kind, occasion, prompt } = question;
    if (kind === 'compacted' || kind === 'start' || (occasion === '' && kind !== 'look'))
      return true;
    const words = kind === 'look' ? hash('sha256', prompt, 'base64url') : '';
    const name = [kind, occasion, words].join('-');
    const address = { ...addressIn(question, name), kind: 'hook-claim' } as const;
    const note = randomUUID();
    const { ledger, clock } = this.#dependencies;
    if (!(await ledger.commit([{ ...address, note, at: clock.now() }]))) return false;
    const found = await ledger.find([address], deadline.msLeft);
    return found.get(address)?.note === note;
  }

  async #placedIn(
    question: InSession,
    session: Session,
    deadline: Deadline,
  ): Promise<readonly (Placed & { readonly block: string })[] | undefined> {
    const names = Array.from({ length: Math.min(session.blocks, BLOCKS_MAX) }, (_, at) => at);
    const addresses = names.map(
      (at) => ({ ...addressIn(question, blockName(session, at)), kind: 'own-block' }) as const,
    );
    const found = await this.#dependencies.ledger.find(addresses, deadline.msLeft);
    if (found.missing !== undefined) return undefined;
    return addresses.flatMap((address) => {
      const { block = '', form = 'text' } = found.get(address) ?? {};
      const tokens = estimateTextTokens(block);
      // roomForBlock() takes a block for one of a second look if its item has no human text.
      return [{ block, tokens, item: { humanText: form === 'part' ? '' : 'a prompt' } }];
    });
  }

  async #sessionOf(question: InSession, deadline: Deadline): Promise<Session | undefined> {
    const address = noteAddress(question);
    const found = await this.#dependencies.ledger.find([address], deadline.msLeft);
    if (found.missing !== undefined) return undefined;
    const note = found.get(address)?.note;
    return note === undefined ? NEW_SESSION : readSession(note);
  }

  async #note(question: HookQuestion, session: Session): Promise<void> {
    await this.#dependencies.ledger.record([this.#noteOf(question, session)]);
  }

  #noteOf(
    question: HookQuestion,
    { epoch, since, blocks, prompts }: Session,
  ): EntryOf<'hook-note'> {
    const note = [epoch, since, blocks, prompts].join(' ');
    return { ...noteAddress(question), note, at: this.#dependencies.clock.now() };
  }
}

/** Bound on the records of a session that are read, newest first. An afternoon makes fewer. */
const SAID_MAX = 500;

function readSession(note: string): Session {
  const [epoch = 0, since = 0, blocks = 0, prompts = 0] = note.split(' ').map(Number);
  return { epoch, since, blocks, prompts };
}

type InSession = Pick<HookQuestion, 'session'>;

function noteAddress(question: InSession): AddressOf<'hook-note'> {
  return { ...addressIn(question, 'session'), kind: 'hook-note' };
}

function blockName({ epoch }: Session, at: number): string {
  return `hook-${epoch}-${at}`;
}

/** Makes the parts of a ledger address. `fingerprint`: a name that no item of a request has as its fingerprint. */
function addressIn({ session }: InSession, fingerprint: string) {
  return { tenant: LOCAL_TENANT, conversation: session, fingerprint } as const;
}

interface Fitting {
  readonly texts: Pick<Texts, 'writeBlock'>;
  readonly room: number;
  /** Tokens that the session's earlier blocks leave of the limit for all its blocks; see roomLeft. */
  readonly left: number;
  readonly isLook: boolean;
  /** The blocks that the session has already. */
  readonly told: readonly string[];
  readonly key: string;
}

/** Writes a block within the byte limit of a hook; '' if that fails. */
function blockThatFits(
  answer: QuotedAnswer,
  { texts, room, left, isLook, told, key }: Fitting,
): WrittenBlock {
  let limits = limitsOfBlock({ tokensMax: room, left, isLook });
  for (let tries = 0; tries < FITS_MAX; tries += 1) {
    const written = texts.writeBlock(answer, limits, told);
    const block = marked(written, key);
    if (fitsHook(block.text)) return { ...written, ...block };
    limits = { ...limits, tokensMax: Math.floor(limits.tokensMax * 0.75) };
  }
  return { text: '', tokens: 0, quoted: [] };
}
