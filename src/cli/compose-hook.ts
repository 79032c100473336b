import { hookKey } from '../adapters/files/hook-key.ts';
import { openEmbeddedStore } from '../adapters/store/embedded-store.ts';
import { BUSY_MS, OwnThreadClient } from '../adapters/store/own-thread-client.ts';
import { TEXTS } from '../adapters/texts.ts';
import { CodeFiles } from '../adapters/projects/code-files.ts';
import { GitProjects } from '../adapters/projects/git-projects.ts';
import type { MemorySettings, ProxySettings } from '../core/settings/settings.ts';
import { OUTPUT_PLACE, referenceOf, textDigest } from '../core/memory/reference.ts';
import { isStorable } from '../core/shortening/outputs.ts';
import type { HookEvent } from '../core/hooks/hook-event.ts';
import type { HookRequest } from '../core/hooks/hook-question.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Projects } from '../ports/projects.ts';
import type { OwnBlocks } from '../core/recall/own-blocks.ts';
import { HookMemory, type PlacedAt } from '../proxy/hook-memory.ts';
import { systemClock } from './compose-common.ts';

/** Opens the memory for one hook that no proxy answers. */

export interface HookStore {
  readonly ledger: Ledger;
  readonly outbox: Outbox;
  readonly projects: Projects;
  answer(request: HookRequest): Promise<string>;
  /**
   * Stores a tool's output, and returns its reference if the memory then returns the same text. Returns undefined if it
   * does not, or if the text may not be stored: it has a secret, its project has no memory, or memories are in a
   * service.
   */
  keepOutput(
    text: string,
    event: Pick<HookEvent, 'session' | 'folder'>,
    client: string,
  ): Promise<string | undefined>;
  /**
   * Returns what identifies svc's blocks: the hook key, and with `areListed` the blocks of the session, for a client
   * without a readable transcript.
   */
  ownBlocks(session: string, areListed: boolean): Promise<OwnBlocks>;
  /** Returns which blocks the proxy has placed in this session, by prompt. */
  placedAt(session: string, prompts: readonly string[]): Promise<PlacedAt>;
  close(): Promise<void>;
}

export interface HookStoreOptions {
  readonly dataFolder: string;
  readonly settings: ProxySettings;
  readonly memory: MemorySettings;
  /** Deadline of an answer, in milliseconds; undefined: the default of HookMemory. */
  readonly answerMs?: number;
}

export async function openHookStore(options: HookStoreOptions): Promise<HookStore> {
  const { dataFolder, settings } = options;
  const store = openEmbeddedStore({
    folder: dataFolder,
    report,
    openClient: (parts) => new OwnThreadClient(parts),
    openMs: BUSY_MS,
  });
  const hosted = options.memory.kind === 'hosted' ? options.memory : undefined;
  const service =
    hosted === undefined
      ? undefined
      : (
          await import('../adapters/memory-client/open-hosted-memory.ts')
        ).openHostedMemoryWithOutbox({
          settings: hosted,
          recallMs: settings.recallMs,
          mirror: store.memory,
          state: store.state,
          report,
        });
  const projects = new GitProjects(dataFolder);
  const memory = new HookMemory({
    memory: service?.memory ?? store.memory,
    ledger: store.ledger,
    clock: systemClock,
    settings: () => settings,
    projects,
    texts: TEXTS,
    code:
      hosted === undefined ? { reader: new CodeFiles(), provenance: store.provenance } : undefined,
    hookKey: () => hookKey(dataFolder),
    answerMs: options.answerMs,
  });
  return {
    ledger: store.ledger,
    outbox: service?.outbox ?? store.outbox,
    projects,
    answer: (request) => memory.answer(request),
    keepOutput: async (text, { session: conversation, folder }, client) => {
      const { space, isMemoryOff } = await projects.find(folder);
      if (hosted !== undefined || isMemoryOff === true) return undefined;
      if (!isStorable(text)) return undefined;
      const digest = textDigest('tool', text);
      const at = Date.now();
      const record = { ...OUTPUT_PLACE, digest, space, text, conversation, client, at };
      const signal = AbortSignal.timeout(KEEP_MS);
      await store.memory.capture([record], signal);
      const held = await store.memory.retrieve({ digest, space }, signal);
      return held?.text === text ? referenceOf(digest) : undefined;
    },
    ownBlocks: async (session, areListed) => ({
      key: hookKey(dataFolder) ?? '',
      blocks: areListed ? await memory.blocksOf(session) : [],
    }),
    placedAt: (session, prompts) => memory.placedAt(session, prompts),
    close: async () => {
      await service?.close();
      await store.close();
    },
  };
}

/** Deadline of storing an output, while user and model wait. After it, the output stays whole in the prompt. */
const KEEP_MS = 600;

/** Ignores warnings, because a hook cannot show them to the user. */
function report(): void {}
