import type { WireItem } from '../dialect-wire.ts';
import type { Reply, SeenRequest } from '../story.ts';
import type { Judgement, Lost, ModelRequest } from '../strict-provider/judgement.ts';
import { isThought, strictReply } from '../strict-provider/reply.ts';
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
  #request: { readonly judgement: Judgement; readonly text: string } | undefined;
  #judgements: Judgement[] = [];
  #thoughts: readonly WireItem[] = [];

  constructor({ account, isStrictest }: Omit<Extract<Step, { kind: 'provider' }>, 'kind'>) {
    const readings = isStrictest ? STRICTEST : {};
    const settings = strictSettings({ account, readings });
    this.direct = new StrictProvider(settings);
    this.through = new StrictProvider(settings);
  }

  /** Before the client sends: the request directly, and the text of the answer to it. */
  expect(request: ModelRequest, text: string): void {
    this.#request = { judgement: this.direct.judge(request), text };
    this.#judgements = [];
    this.#thoughts = [];
  }

  /** The answer to what svc forwarded, or to what the client sent itself. */
  reply(seen: SeenRequest): Reply {
    const json: unknown = JSON.parse(seen.body.toString());
    const request = modelRequest(seen.path, seen.headers, json);
    if (request === undefined || this.#request === undefined) throw new Error('not expected');
    const judgement = this.through.judge(request);
    this.#judgements.push(judgement);
    const { text, judgement: direct } = this.#request;
    return strictReply(request, judgement, {
      text,
      seal: (output) => {
        const sealed = sealBoth(direct, judgement)(output);
        this.#thoughts = sealed.filter(isThought) as readonly WireItem[];
        return sealed;
      },
    });
  }

  /** Of the newest answer, as the client sends it back. */
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

/** The readings under which most counts as a change. */
const STRICTEST = {
  stringIsOneBlock: false,
  toolOrderCounts: true,
  effortCounts: true,
  earlierReasoningCounts: true,
};
