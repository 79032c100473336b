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

/** The memory, opened for one call of a client's hook that no proxy answers. */
export interface HookStore {
  readonly ledger: Ledger;
  readonly outbox: Outbox;
  readonly projects: Projects;
  answer(request: HookRequest): Promise<string>;
  /**
   * Stores a tool's output, reads it back, and returns its reference. Returns undefined if the text read is different.
   * Stores nothing and returns undefined if the text has a secret or is not storable (see isStorable), if memory is off
   * for its project, or if memories are in a service.
   */
  keepOutput(
    text: string,
    event: Pick<HookEvent, 'session' | 'folder'>,
    client: string,
  ): Promise<string | undefined>;
  /**
   * Returns what identifies svc's blocks in a text: the hook key, and with `areListed` also the blocks of the session.
   * Clients whose transcript svc cannot read need the list, and so does Copilot CLI.
   */
  ownBlocks(session: string, areListed: boolean): Promise<OwnBlocks>;
  /** Returns the blocks that the proxy has placed in this session, by the prompt in which each stands. */
  placedAt(session: string, prompts: readonly string[]): Promise<PlacedAt>;
  close(): Promise<void>;
}

export interface HookStoreOptions {
  readonly dataFolder: string;
  readonly settings: ProxySettings;
  readonly memory: MemorySettings;
  /** Deadline of the hook's answer, in milliseconds; undefined: the default of HookMemory. */
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
      if (hosted !== undefined || isMemoryOff === true || !isStorable(text)) return undefined;
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

/** Deadline of keepOutput() in milliseconds, while user and model wait. After it the prompt keeps the whole output. */
const KEEP_MS = 600;

/** Ignores warnings, because a hook cannot show them to the user. */
function report(): void {}
