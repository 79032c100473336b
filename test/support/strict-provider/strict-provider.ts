import { DIALECTS, PATHS } from '../dialect-wire.ts';
import { field, textField } from '../scripted-provider/loose-json.ts';
import type { PromptUsage } from '../scripted-provider/prompt-cache.ts';
import { refusedChat } from './chat.ts';
import { checksPrefix, claudeModel, enforcesOnEveryAccount } from './claude-models.ts';
import type { Judgement, Lost, ModelRequest, Refusal } from './judgement.ts';
import { readMessages } from './messages-prefix.ts';
import { BINDING_BETA, refusedShape } from './messages-shape.ts';
import { BoundThinking, type Failed } from './messages-thinking.ts';
import { PromptCache, chargeMessages, chargeOpenAi, priceOf } from './prompt-cache.ts';
import { BoundReasoning, readInput, refusedItems } from './responses.ts';
import { type StrictSettings, strictSettings } from './settings.ts';

/**
 * A model provider as strict as the real ones: `judge` refuses what they refuse, drops the thinking that
 * they drop, and charges as they charge. It makes no answer; who makes one has its thinking sealed.
 *
 * Each rule names its source and the day of the copy that was read. No real provider was asked.
 */
export class StrictProvider {
  /** In order; a test asserts that they are empty. */
  readonly refusals: Refusal[] = [];
  readonly lost: Lost[] = [];
  /** In units of one uncached input token. */
  price = 0;
  readonly #settings: StrictSettings;
  readonly #thinking: BoundThinking;
  readonly #reasoning: BoundReasoning;
  readonly #cache: PromptCache;

  constructor(settings: StrictSettings = strictSettings()) {
    this.#settings = settings;
    this.#thinking = new BoundThinking(settings.readings);
    this.#reasoning = new BoundReasoning(settings.readings);
    this.#cache = new PromptCache(settings.now);
  }

  judge(request: ModelRequest): Judgement {
    const judgement = this.#judge(request);
    if (judgement.kind === 'refused') this.refusals.push(judgement.refusal);
    else {
      this.lost.push(...judgement.lost);
      this.price += priceOf(judgement.usage, textField(request.json, 'model'));
    }
    return judgement;
  }

  #judge(request: ModelRequest): Judgement {
    switch (request.dialect) {
      case 'anthropic_messages':
        return this.#judgeMessages(request);
      case 'openai_responses':
        return this.#judgeResponses(request.json);
      case 'openai_chat_completions':
        return this.#judgeChat(request.json);
    }
  }

  #judgeMessages(request: ModelRequest): Judgement {
    const { json, betas } = request;
    const refusal = refusedShape(request, this.#settings.readings);
    if (refusal !== undefined) return refused(refusal);
    const prefix = readMessages(json, this.#settings.readings);
    const check = this.#thinking.check(prefix, textField(json, 'model'));
    if (check.damaged !== undefined) return refused(damagedSignature(check.damaged));
    const outcome = this.#outcome(request);
    const [first] = check.mismatched;
    if (first !== undefined && outcome === 'error') {
      const { errorNamesChange } = this.#settings.readings;
      return refused(boundElsewhere(first, betas, errorNamesChange));
    }
    const isAllowed = outcome === 'allow';
    const lost = [
      ...check.unreadable.map((failed) => lostBlock(failed, 'model', false)),
      ...check.mismatched.map((failed) => lostBlock(failed, 'prefix', isAllowed)),
    ];
    const dropped = new Set(lost.filter((it) => !it.isAllowed).map(({ path }) => path));
    return {
      kind: 'accepted',
      lost,
      transformations: betas.includes(BINDING_BETA) ? lost.map(transformation) : undefined,
      usage: request.isCount ? NOTHING : chargeMessages(this.#cache, prefix, dropped),
      seal: check.seal,
    };
  }

  /**
   * Setting the field opts a request of any account in; unset, it is an error on new accounts and with the
   * newest models (preserved-thinking, 2026-09-26; whats-new-fable-5-2, 2026-11-09).
   */
  #outcome({ json }: ModelRequest): 'error' | 'drop_block' | 'allow' {
    const binding = field(field(json, 'thinking'), 'block_binding');
    const asked = field(binding, 'prefix_mismatch_behavior');
    if (asked === 'error' || asked === 'drop_block') return asked;
    const model = claudeModel(textField(json, 'model'));
    if (model === undefined || !checksPrefix(model, this.#settings.readings)) return 'allow';
    const isEnforced = this.#settings.account === 'new' || enforcesOnEveryAccount(model);
    return isEnforced ? 'error' : 'allow';
  }

  #judgeResponses(json: unknown): Judgement {
    const items = readInput(json);
    const refusal = refusedItems(json, items);
    if (refusal !== undefined) return refused(refusal);
    const check = this.#reasoning.check(json, items);
    if (check.damaged !== undefined) {
      // The words are those of the public API (seen in issues of 2025).
      const message = `The encrypted content for item ${check.damaged.id} could not be verified.`;
      return refused({ status: 400, path: '', reason: 'signature', message });
    }
    const lost = check.mismatched.map(({ seal, item }) => ({
      seal,
      path: item.id,
      reason: 'prefix' as const,
      isAllowed: false,
    }));
    const kept = items.filter((item) => !check.mismatched.some((it) => it.item === item));
    return {
      kind: 'accepted',
      lost,
      // Entries with the id of the item and this reason (keep-prefix-unchanged, 2026-11-19).
      transformations: lost.map(({ path }) => ({ id: path, reason: 'prefix_mismatch' })),
      usage: chargeOpenAi(this.#cache, json, kept),
      seal: check.seal,
    };
  }

  #judgeChat(json: unknown): Judgement {
    const refusal = refusedChat(json);
    if (refusal !== undefined) return refused(refusal);
    const items = readInput({ input: field(json, 'messages') });
    return {
      kind: 'accepted',
      lost: [],
      transformations: undefined,
      usage: chargeOpenAi(this.#cache, json, items),
      seal: (output) => output,
    };
  }
}

/** Counting reads and writes nothing. */
const NOTHING: PromptUsage = { input: 0, cacheRead: 0, cacheWrite: 0 };

function refused(refusal: Refusal): Judgement {
  return { kind: 'refused', refusal };
}

/** A damaged signature is an error on every model and account; no setting helps (2026-09-26, measured 2026-09-23). */
function damagedSignature({ thought, path }: Failed): Refusal {
  const message = `${path}: Invalid \`signature\` in \`${thought.type}\` block`;
  return { status: 400, path, reason: 'signature', message };
}

/** Word for word as in preserved-thinking, 2026-09-26. */
function boundElsewhere(
  { thought, path, change }: Failed,
  betas: readonly string[],
  namesChange: boolean,
): Refusal {
  const sentences = [
    `${path}: Invalid \`signature\` in \`${thought.type}\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".`,
    ...(betas.includes(BINDING_BETA)
      ? []
      : [`That setting requires the \`${BINDING_BETA}\` value in the \`anthropic-beta\` header.`]),
    ...(namesChange && change !== undefined ? [change] : []),
  ];
  return { status: 400, path, reason: 'prefix', message: sentences.join(' ') };
}

function lostBlock({ thought, path }: Failed, reason: Lost['reason'], isAllowed: boolean): Lost {
  return { seal: thought.seal, path, reason, isAllowed };
}

function transformation({ path, reason, isAllowed }: Lost): object {
  return {
    type: isAllowed ? 'thinking_mismatch_allowed' : 'thinking_dropped',
    path,
    reason: reason === 'model' ? 'model_binding_mismatch' : 'prefix_binding_mismatch',
  };
}

/**
 * What a proxy in between did: what the provider refused or dropped although it would not have, had the
 * client asked it directly. Both judgements are of the same request of the client.
 */
export function causedBetween(direct: Judgement, through: Judgement): readonly string[] {
  if (direct.kind === 'refused') return [];
  if (through.kind === 'refused') return [`refused: ${through.refusal.message}`];
  const known = new Set(direct.lost.map(({ seal, reason }) => `${reason} ${seal}`));
  return through.lost
    .filter(({ seal, reason }) => !known.has(`${reason} ${seal}`))
    .map(({ path, reason, isAllowed }) =>
      isAllowed ? `mismatch: ${path}` : `thinking lost (${reason}): ${path}`,
    );
}

/** Undefined for a path without rules. `headers`: name, value, name, value. */
export function modelRequest(
  path: string,
  headers: readonly string[],
  json: unknown,
): ModelRequest | undefined {
  const dialect = DIALECTS.find((one) => path.startsWith(PATHS[one]));
  if (dialect === undefined || json === undefined) return undefined;
  const betas = headers.flatMap((name, at) =>
    at % 2 === 0 && name.toLowerCase() === 'anthropic-beta'
      ? (headers[at + 1] ?? '').split(',')
      : [],
  );
  const isCount = path.includes('/count_tokens');
  return { dialect, isCount, betas: betas.map((beta) => beta.trim()), json };
}

/** Direct and through the proxy: tells the stand-in for the direct run what the answer's thinking is bound to. */
export function sealBoth(
  direct: Judgement,
  through: Judgement,
): <Part extends object>(output: readonly Part[]) => readonly Part[] {
  return (output) => {
    const sealed = through.kind === 'accepted' ? through.seal(output) : output;
    return direct.kind === 'accepted' ? direct.seal(sealed) : sealed;
  };
}
