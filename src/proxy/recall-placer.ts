import { heldDigest, questionText } from '../core/captures.ts';
import type { MemoryState } from '../core/evidence.ts';
import {
  entriesFor,
  type HumanItem,
  humanItems,
  type InjectionEntry,
  type Placement,
  replayBlocks,
  roomForBlock,
  unansweredItem,
} from '../core/injections.ts';
import { contentForm } from '../core/item-edits.ts';
import type { Modes } from '../core/modes.ts';
import { writeRecallBlock } from '../core/recall-block.ts';
import type { ProxySettings } from '../core/settings.ts';
import type { ProxyParts } from './parts.ts';
import type { Reading } from './read-request.ts';
import { RecallGuard } from './recall-guard.ts';

/** The blocks that a request carries, and what the client is told about memory. */
export interface PlacedRecall {
  readonly placements: readonly Placement[];
  readonly state: MemoryState;
}

// BM25 over more words than this finds the common ones: a question is a few sentences.
const QUESTION_CHARS_MAX = 4_096;
const NOTHING: readonly Placement[] = [];

interface MainCall {
  readonly reading: Reading;
  readonly settings: ProxySettings;
  readonly isCacheCold: boolean;
}

/** Replays what the ledger knows, recalls for a new prompt, and records what it placed. */
export class RecallPlacer {
  readonly #parts: ProxyParts;
  readonly #guard: RecallGuard;

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    this.#guard = new RecallGuard(parts.memory, parts.clock);
  }

  /** Never throws: what goes wrong is a state. */
  async place(call: {
    readonly reading: Reading | undefined;
    readonly modes: Modes;
    readonly settings: ProxySettings;
    readonly isCacheCold: boolean;
  }): Promise<PlacedRecall> {
    const { reading, modes, settings } = call;
    if (modes.memory === 'off') return { placements: NOTHING, state: 'off' };
    if (!modes.reads) return { placements: NOTHING, state: 'write_only' };
    if (reading === undefined) return { placements: NOTHING, state: 'skipped_unsupported' };
    if (reading.identity.kind !== 'main')
      return { placements: NOTHING, state: 'skipped_side_call' };
    if (reading.hasProviderState) return { placements: NOTHING, state: 'skipped_unsupported' };
    // Shadow forwards the original request: there is nothing to recall for.
    if (modes.compression === 'shadow')
      return { placements: NOTHING, state: 'skipped_unsupported' };
    return this.#placeMain({ reading, settings, isCacheCold: call.isCacheCold });
  }

  /** The provider refused the changed request: this conversation is left alone from now on. */
  refused(reading: Reading): void {
    this.#parts.ledger.record([
      {
        key: refusalKey(reading),
        block: '',
        form: 'text',
        dropsEarlier: false,
        at: this.#parts.clock.now(),
      },
    ]);
  }

  async #placeMain({ reading, settings, isCacheCold }: MainCall): Promise<PlacedRecall> {
    const humans = humanItems(reading.view, reading.place);
    const entries = await this.#parts.ledger.find([
      refusalKey(reading),
      ...humans.flatMap(({ exactKey, looseKey }) => [exactKey, looseKey]),
    ]);
    if (entries.has(refusalKey(reading))) {
      return { placements: NOTHING, state: 'skipped_unsupported' };
    }
    const now = this.#parts.clock.now();
    const unanswered = unansweredItem(reading.view);
    const { isStated } = reading.place;
    const replay = replayBlocks(humans, entries, { unanswered, isStated, now });
    const human = humans.find(({ item }) => item === unanswered);
    if (replay.isSettled || human === undefined) return stateOf(replay.placements);

    const { recalledTokensMax } = settings;
    const room = roomForBlock(reading.view, replay.placements, { recalledTokensMax, isCacheCold });
    if (room === undefined) return this.#settle(human, replay.placements, undefined);
    const { passages, state } = await this.#guard.recall(
      this.#question(reading, human, room.tokensMax),
      settings.recallMs,
    );
    // A degraded recall is not recorded: the next request of this prompt asks again.
    if (state !== 'recalled' && state !== 'empty') return { placements: replay.placements, state };
    const block = writeRecallBlock(passages, room.tokensMax);
    const form = contentForm(reading.view, human.item);
    if (block.text === '' || form === undefined) {
      return this.#settle(human, replay.placements, undefined);
    }
    const placement = { item: human.item, block: block.text, form, tokens: block.tokens };
    const earlier = room.dropsEarlier ? NOTHING : replay.placements;
    return this.#settle(human, [...earlier, placement], {
      block: block.text,
      form,
      dropsEarlier: room.dropsEarlier,
    });
  }

  /** Records the decision for this prompt before it is forwarded, so that a restart repeats it. */
  #settle(
    human: HumanItem,
    placements: readonly Placement[],
    decided: Pick<InjectionEntry, 'block' | 'form' | 'dropsEarlier'> | undefined,
  ): PlacedRecall {
    const nothing = { block: '', form: 'text', dropsEarlier: false } as const;
    this.#parts.ledger.record(
      entriesFor(human, { ...(decided ?? nothing), at: this.#parts.clock.now() }),
    );
    return stateOf(placements);
  }

  #question(reading: Reading, human: HumanItem, tokensMax: number) {
    const previous = reading.exchanges.findLast(({ assistantText }) => assistantText !== '');
    return {
      space: reading.place.space,
      humanText: questionText(human.item.humanText, QUESTION_CHARS_MAX),
      assistantText: questionText(previous?.assistantText ?? '', QUESTION_CHARS_MAX),
      excludeDigests: reading.exchanges.flatMap(({ humanText, assistantText }) => [
        heldDigest('user', humanText),
        heldDigest('assistant', assistantText),
      ]),
      tokensMax,
      now: this.#parts.clock.now(),
    };
  }
}

function refusalKey({ place }: Reading): string {
  return `refused:${place.space}:${place.conversation}`;
}

function stateOf(placements: readonly Placement[]): PlacedRecall {
  return { placements, state: placements.length === 0 ? 'empty' : 'recalled' };
}
