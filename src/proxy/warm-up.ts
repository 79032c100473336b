import { dialectOf } from '../core/dialects/dialects.ts';
import { captureAssistant, captureHuman } from '../core/memory/captures.ts';
import type { Dialect } from '../core/conversation/dialect.ts';
import { applyEdits } from '../core/plan/edits.ts';
import { readFacts, removalOf, settle } from '../core/shortening/removal.ts';
import { readExchangeTexts } from '../core/shortening/omissions.ts';
import { seenOutputsOf } from '../core/shortening/output-list.ts';
import { readItemTools } from '../core/shortening/outputs.ts';
import { makePlan } from '../core/plan/plan.ts';
import { cachePrices } from '../core/shortening/pricing.ts';
import { replacementsOf } from '../core/shortening/replacements.ts';
import { Conversations } from './conversations.ts';
import { type Reading, readRequest } from './read-request.ts';

/** Long enough that no rule for short texts ends the work early. It is never sent or stored. */
const SAMPLE =
  'The staging database listens on port 6432, and the key of its token is "unset".\n\n';

/** So many that the oldest outputs are a batch. */
const ROUNDS = 14;
const LINES = 10;

/**
 * Call it while no request is open: it reads, judges and shortens a made-up conversation, as a
 * request would. The code that this compiles is then ready for the first request, for which it
 * takes 35 ms, and in the code cache of later starts.
 *
 * One dialect is enough: the others have little code of their own, and would cost 5 MB of memory.
 * Other work runs between the steps. Resolves to the number of outputs that it left out: 0 would
 * mean that it warmed nothing.
 */
export async function warmUp(dialect: Dialect): Promise<number> {
  captureHuman(SAMPLE);
  captureAssistant(SAMPLE);
  const conversations = new Conversations();
  let leftOut = 0;
  // The second is read from where it differs, as nearly every request is.
  for (const rounds of [ROUNDS, ROUNDS + 1]) {
    // oxlint-disable-next-line no-await-in-loop -- One after the other is the point.
    await new Promise((resolve) => setImmediate(resolve));
    const reading = readSample(conversations, dialect, rounds);
    // oxlint-disable-next-line no-await-in-loop
    await new Promise((resolve) => setImmediate(resolve));
    if (reading !== undefined) leftOut += shortenSample(reading);
  }
  return leftOut;
}

function readSample(
  conversations: Conversations,
  dialect: Dialect,
  rounds: number,
): Reading | undefined {
  const body = Buffer.from(JSON.stringify(sampleBody(dialect, rounds)));
  const route = { kind: 'model', dialect } as const;
  const headers = ['user-agent', 'svc', 'content-type', 'application/json'];
  const head = { id: '', method: 'POST', target: '/', startedAt: 0 };
  return readRequest(conversations, { ...head, route, headers, body });
}

function shortenSample({ view }: Reading): number {
  const facts = readFacts({
    view,
    tokens: view.tokens,
    batches: [],
    outputs: seenOutputsOf(view, (item) => readItemTools(view, item)),
    textsOf: (exchange) => readExchangeTexts(view, exchange),
    isStored: () => true,
    takesNew: true,
    isBound: false,
    isCacheCold: true,
    keepRounds: 4,
    inputBudget: 0,
    room: undefined,
    prices: cachePrices({ dialect: view.dialect, facts: undefined }),
  });
  const removal = removalOf(facts);
  const digests = new Set(removal.batch.map(({ digest }) => digest));
  const { elided, omitted, outcome } = settle(facts, removal, digests);
  const style = { outputFolder: undefined };
  const shortening = { elided: replacementsOf(elided, style), omitted, outcome };
  const modes = {
    memory: 'read',
    reads: true,
    writes: false,
    compression: 'deterministic',
  } as const;
  const plan = makePlan({ view, modes, placements: [], shortening, cacheMarks: [] });
  applyEdits(view.bytes, plan.edits);
  return plan.elidedItems;
}

/** A request of a client of this dialect after so many tool calls. */
function sampleBody(dialect: Dialect, rounds: number): object {
  const tools = [{ name: 'Bash', description: SAMPLE }];
  const shell = { model: 'claude', max_tokens: 1024, stream: true, tools };
  const outputs = Array.from({ length: rounds }, (_, round) => outputOf(round));
  return dialectOf(dialect).sample.agentRequest(shell, SAMPLE, outputs);
}

function outputOf(round: number): string {
  return Array.from({ length: LINES }, (_, line) => `${round}.${line} ${SAMPLE}`).join('');
}
