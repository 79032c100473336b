import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { decodeBody } from '../../support/scripted-provider/body-coding.ts';
import { type ProviderRecord, answerOf } from '../../support/scripted-provider/provider-record.ts';
import {
  type ScriptedProvider,
  startScriptedProvider,
} from '../../support/scripted-provider/provider.ts';
import { type RunningSvc, startSvc, type SvcOptions } from './svc.ts';
import { Tap, type WireExchange } from './tap.ts';
import { headerIn } from './wire-message.ts';

/**
 * Everything one test needs: a provider behind the proxy, the proxy, a tap in front of it, a home
 * and a project folder for clients. All of it is gone when the test is over.
 */
export interface Stage {
  readonly provider: ScriptedProvider;
  readonly tap: Tap;
  /** Base URL for clients, without /v1. */
  readonly url: string;
  readonly home: string;
  readonly project: string;
  readonly svc: RunningSvc;
  /** The proxy again, in the same home, after a stop or kill. */
  restartSvc(): Promise<void>;
  /** A further empty folder. */
  newFolder(name: string): string;
}

/** Where a client runs, and the server that it asks. */
export interface ClientPlace {
  readonly url: string;
  readonly home: string;
  readonly project: string;
  /** What the client presents as its key. */
  readonly svc: { readonly token: string };
}

/** One model call as both sides saw it. */
export interface CallPair {
  readonly record: ProviderRecord;
  readonly exchange: WireExchange;
  /** The client's body, content coding undone. */
  readonly clientBody: Buffer;
  readonly forwardedBody: Buffer;
  /** The answer's body as the client got it. */
  readonly clientAnswer: Buffer;
  readonly providerAnswer: Buffer;
}

export async function openStage(
  settings: Readonly<Record<string, unknown>> = {},
  more: Pick<SvcOptions, 'memory' | 'env'> = {},
): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-clients-'));
  const newFolder = (name: string) => {
    mkdirSync(join(folder, name), { recursive: true });
    return join(folder, name);
  };
  const provider = await startScriptedProvider();
  const start = () =>
    startSvc({ upstreamUrl: provider.url, home: newFolder('svc'), settings, ...more });
  let svc = await start();
  const tap = new Tap(svc.port);
  await tap.start();
  onTestFinished(async () => {
    await tap.stop();
    await svc.kill();
    await provider.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  });
  return {
    provider,
    tap,
    url: tap.url,
    home: newFolder('home'),
    project: newFolder('project'),
    get svc() {
      return svc;
    },
    async restartSvc() {
      svc = await start();
    },
    newFolder,
  };
}

/** The model calls that reached the provider and whose answer began to reach the client. */
export function callPairs({ provider, tap }: Stage): readonly CallPair[] {
  const { exchanges } = tap;
  return provider.records.flatMap((record) => {
    const exchange = exchanges.find(({ answer }) => answerIdOf(answer) === record.answerId);
    if (exchange?.answer === undefined || record.method !== 'POST') return [];
    const { request, answer } = exchange;
    return {
      record,
      exchange,
      clientBody: decodeBody(request.body, headerIn(request.headers, 'content-encoding')),
      forwardedBody: record.body,
      clientAnswer: answer.body,
      providerAnswer: answerOf(record),
    };
  });
}

/** Whether any file of the data folder holds these words, in whatever format. */
export function isKept(stage: Stage, words: string): boolean {
  if (!existsSync(stage.svc.dataFolder)) return false;
  return readdirSync(stage.svc.dataFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .some((entry) => readFileSync(join(entry.parentPath, entry.name)).includes(words));
}

/** A header of the answer as the client got it. */
export function evidence(pair: CallPair, name: string): string | undefined {
  return headerIn(pair.exchange.answer?.headers ?? [], name);
}

function answerIdOf(answer: WireExchange['answer']): string | undefined {
  if (answer === undefined) return undefined;
  return headerIn(answer.headers, 'request-id') ?? headerIn(answer.headers, 'x-request-id');
}
