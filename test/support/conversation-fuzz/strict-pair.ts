import type { Dialect } from '../../../src/core/conversation/view.ts';
import type { WireItem } from '../dialect-wire.ts';
import { errorBodyOf } from '../scripted-provider/faults.ts';
import { field, listField } from '../scripted-provider/loose-json.ts';
import type { Reply, SeenRequest } from '../story.ts';
import type { Judgement, Lost, ModelRequest } from '../strict-provider/judgement.ts';
import { isThought, type StrictAnswer, strictReply } from '../strict-provider/reply.ts';
import { strictSettings } from '../strict-provider/settings.ts';
import {
  StrictProvider,
  causedBetween,
  modelRequest,
  sealBoth,
} from '../strict-provider/strict-provider.ts';
import type { Step } from './steps.ts';

/**
 * Two strict providers: the one behind svc gets what svc forwards, the other one is shown what the client
 * sent. What only the first one refuses or drops was caused by svc.
 */
export class StrictPair {
  readonly direct: StrictProvider;
  readonly through: StrictProvider;
  #request: { readonly judgement: Judgement; readonly answer: StrictAnswer } | undefined;
  /** The provider's answers to the next forms, whatever they say. */
  #failures: number[] = [];
  #hasFailed = false;
  #timesFailed = 0;
  /** What stands in the place of a history that the provider compacted. */
  compactedItems: readonly WireItem[] = [];
  #judgements: Judgement[] = [];
  #thoughts: readonly WireItem[] = [];

  constructor({ account, isStrictest }: Omit<Extract<Step, { kind: 'provider' }>, 'kind'>) {
    const readings = isStrictest ? STRICTEST : {};
    const settings = strictSettings({ account, readings });
    this.direct = new StrictProvider(settings);
    this.through = new StrictProvider(settings);
  }

  /** Before the client sends: the request directly, and the answer to it. */
  expect(request: ModelRequest, answer: StrictAnswer): void {
    this.#request = { judgement: this.direct.judge(request), answer };
    this.#hasFailed = false;
    this.#timesFailed = 0;
    this.#judgements = [];
    this.#thoughts = [];
  }

  /** The answer to what svc forwarded, or to what the client sent itself. */
  reply(seen: SeenRequest): Reply {
    const json: unknown = JSON.parse(seen.body.toString());
    const request = modelRequest(seen.path, seen.headers, json);
    if (request === undefined || this.#request === undefined) throw new Error('not expected');
    const failure = this.#failures.shift();
    this.#hasFailed = failure !== undefined;
    if (failure !== undefined) {
      this.#timesFailed += 1;
      return failed(request.dialect, failure);
    }
    const judgement = this.through.judge(request);
    this.#judgements.push(judgement);
    const { answer, judgement: direct } = this.#request;
    if (seen.path.endsWith('/compact')) {
      this.compactedItems = compactedFrom(request);
      return judgement.kind === 'refused'
        ? failed(request.dialect, judgement.refusal.status)
        : json200({ object: 'response.compaction', output: this.compactedItems });
    }
    return strictReply(request, judgement, {
      ...answer,
      seal: (output) => {
        const sealed = sealBoth(direct, judgement)(output);
        const isTold = sealed.some((part) => isThought(part) || isCompaction(part));
        this.#thoughts = (isTold ? sealed.slice(0, -1) : []) as readonly WireItem[];
        return sealed;
      },
    });
  }

  /** The provider answers the next forms with these states. */
  fail(...states: readonly number[]): void {
    this.#failures = [...states];
  }

  /** So many forms of the request met a failure. */
  get timesFailed(): number {
    return this.#timesFailed;
  }

  /** The last form met a failure. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Of the newest answer, as the client sends it back: all that stands in front of its text. */
  get thoughts(): readonly WireItem[] {
    return this.#thoughts;
  }

  /** The client would have been refused without svc too: it edited its own history. */
  get isRefusedDirectly(): boolean {
    return this.#request?.judgement.kind === 'refused';
  }

  get isRefused(): boolean {
    return this.#judgements.at(-1)?.kind === 'refused';
  }

  /** A form of the last request at least. */
  get hasRefused(): boolean {
    return this.#judgements.some(({ kind }) => kind === 'refused');
  }

  /** What the last request lost, in either way. */
  get lost(): readonly Lost[] {
    return this.#judgements.flatMap((it) => (it.kind === 'accepted' ? it.lost : []));
  }

  /** What svc caused, without the blocks in `except`. */
  caused(except: ReadonlySet<string>): readonly string[] {
    const direct = this.#request?.judgement;
    if (direct === undefined) return [];
    return this.#judgements.flatMap((judgement) =>
      causedBetween(
        direct,
        judgement.kind === 'refused'
          ? judgement
          : { ...judgement, lost: judgement.lost.filter(({ seal }) => !except.has(seal)) },
      ),
    );
  }
}

/** 400 and 413 say nothing of thinking, and 429 names no limit. */
function failed(dialect: Dialect, status: number): Reply {
  const body = JSON.stringify(errorBodyOf(dialect, status, 'This cannot be served.'));
  return { status, headers: { 'content-type': 'application/json' }, body };
}

function isCompaction(part: object): boolean {
  return 'type' in part && part.type === 'compaction';
}

/** OpenAI keeps the messages of the person, and puts one item in the place of the rest (compaction guide, 2026-11). */
function compactedFrom({ json }: ModelRequest): readonly WireItem[] {
  const kept = listField(json, 'input').filter((item) => field(item, 'role') === 'user');
  const item = { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAAAcompacted' };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Items as the request has them.
  return [...(kept as readonly WireItem[]), item];
}

function json200(body: object): Reply {
  const headers = { 'content-type': 'application/json' };
  return { status: 200, headers, body: JSON.stringify(body) };
}

/** The readings under which most counts as a change. */
const STRICTEST = {
  stringIsOneBlock: false,
  toolOrderCounts: true,
  effortCounts: true,
  earlierReasoningCounts: true,
};
