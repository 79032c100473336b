import { lostThoughtsText } from '../../core/conversation/lost-thoughts.ts';
import { missText } from '../../core/meter/cache-words.ts';
import { planLimitText } from '../../core/meter/quota-words.ts';
import { stateText } from '../../core/plan/states.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { timeText } from '../listing.ts';
import { bar } from '../text-table.ts';
import { oneLine } from '../terminal.ts';

/** Everything that svc knows of one request: what was asked, what was changed, where time went. */
export function requestDetails(row: RequestRow): readonly string[] {
  const facts: [string, string][] = [
    ['Request', row.id],
    ['Time', timeText(row.at)],
    ['Client', `${row.client}, ${row.kind}`],
    ['Model', `${row.model || '(none named)'}, ${row.dialect}`],
    ['Project', row.space || '(none)'],
    ['Conversation', row.conversation || '(none)'],
    ['Answer', `${row.status}, ${endText(row.end)}`],
    ...meaning(ENDS[row.end] === undefined ? row.end : ''),
    ['Memory', `${row.memoryState} (mode ${row.memoryMode || 'unknown'})`],
    ...meaning(row.memoryState),
    ['Shortening', shorteningText(row)],
    ...meaning(row.continuityState),
    ['Changed', changeText(row)],
    [
      'Tokens',
      `${row.originalInputTokens} in, ${row.forwardedInputTokens} to the provider (estimates)`,
    ],
    ['Provider', usageText(row)],
    ['Price', priceText(row)],
    ...cacheFacts(row),
    ...planFacts(row),
    ...thoughtFacts(row),
  ];
  return [
    ...facts.map(([name, text]) => `${name.padEnd(13)} ${oneLine(text, 400)}`),
    '',
    ...stepLines(row.ms),
  ];
}

function cacheFacts({ miss }: RequestRow): [string, string][] {
  return miss === undefined ? [] : [['Cache missed', missText(miss)]];
}

function planFacts({ planLimit, model }: RequestRow): [string, string][] {
  return planLimit === undefined ? [] : [['Plan', planLimitText(planLimit, model)]];
}

function thoughtFacts(row: RequestRow): [string, string][] {
  const { lostThoughts, prefixChangedBy, droppedThoughts = 0 } = row;
  const facts: [string, string][] = [];
  if (droppedThoughts > 0) {
    facts.push(['Thinking', `the client left out ${droppedThoughts} earlier thoughts`]);
  }
  if (lostThoughts !== undefined) {
    facts.push(['Thinking', lostThoughtsText(lostThoughts, prefixChangedBy)]);
  }
  return facts;
}

/** Explains a state below its name, in the words of docs/states.md. */
function meaning(name: string): [string, string][] {
  const text = stateText(name);
  return text === undefined ? [] : [['', `${text.meaning} ${text.advice}`.trimEnd()]];
}

const ENDS: Readonly<Record<string, string>> = {
  complete: 'complete',
  'client-gone': 'the client closed the connection before the end',
  'upstream-cut': 'the provider’s answer broke off',
};

function endText(end: string): string {
  return ENDS[end] ?? `svc answered ${end}`;
}

function changeText(row: RequestRow): string {
  const changes = [
    ...(row.recalledTokens > 0 ? [`about ${row.recalledTokens} recalled tokens added`] : []),
    ...(row.secondLooks === undefined ? [] : [secondLooksText(row.secondLooks)]),
    ...(row.elidedItems > 0
      ? [`${row.elidedItems} items of about ${row.elidedTokens} tokens left out`]
      : []),
  ];
  if (row.cleared !== undefined) {
    const { outputs, tokens } = row.cleared;
    changes.push(`the provider cleared ${outputs} tool outputs of ${tokens} tokens`);
  }
  return changes.length === 0 ? 'nothing; svc sent the client’s own bytes' : changes.join(', ');
}

/** They are a part of the recalled tokens. */
function secondLooksText({ tokens, written }: NonNullable<RequestRow['secondLooks']>): string {
  const repeated = tokens - written;
  const parts = [
    ...(written > 0 ? [`${written} written now`] : []),
    ...(repeated > 0 ? [`${repeated} of earlier requests`] : []),
  ];
  return `of them ${parts.join(' and ')} by second looks`;
}

function usageText({ usage }: RequestRow): string {
  if (usage === undefined) return 'reported no token counts';
  const { input, cacheRead, cacheWrite, output } = usage;
  const all = input + cacheRead + cacheWrite;
  const rate = all === 0 ? '' : ` (${Math.round((cacheRead / all) * 100)} %)`;
  return `${input} tokens at full price, ${cacheRead} from its cache${rate}, ${cacheWrite} written to it, ${output} answered`;
}

function shorteningText({ continuityState, compressionMode }: RequestRow): string {
  return `${continuityState} (mode ${compressionMode})`;
}

function priceText({ price }: RequestRow): string {
  if (price === undefined) return 'not known';
  const { paid, direct } = price;
  const share = direct === 0 ? '' : ` (${Math.round((paid / direct) * 100)} %)`;
  return `that of ${Math.round(paid)} input tokens at full price; direct about ${Math.round(direct)}${share}`;
}

const STEPS: Readonly<Record<string, string>> = {
  body: 'body received',
  read: 'body parsed',
  recall: 'recall',
  plan: 'planning',
  head: 'the provider’s first byte',
  relay: 'the rest of its answer',
};

const BAR_COLUMNS = 30;

function stepLines(ms: RequestRow['ms']): readonly string[] {
  const steps = Object.entries(ms);
  const total = steps.reduce((sum, [, one]) => sum + one, 0);
  return [...steps, ['total', total] as const].map(([name, one]) => {
    const what = name === 'total' ? 'together' : (STEPS[name] ?? oneLine(name, 30));
    const share = name === 'total' ? '' : bar(total === 0 ? 0 : one / total, BAR_COLUMNS);
    return `${one.toFixed(1).padStart(10)} ms  ${what.padEnd(26)} ${share}`.trimEnd();
  });
}
