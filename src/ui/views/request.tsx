import { cacheShare, short, tookMs } from '../../core/meter/figures.ts';
import type { ComponentChildren } from 'preact';
import { missText } from '../../core/meter/cache-words.ts';
import { planLimitText } from '../../core/meter/quota-words.ts';
import { requestReport } from '../../core/meter/request-report.ts';
import type { ItemNote } from '../../core/plan/item-notes.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import type { KeptTexts, RequestAnswer } from '../../ports/ui-api.ts';
import { parseJson } from '../../core/bytes/json-fields.ts';
import { stateText, lostThoughtsText } from '../../core/plan/states.ts';
import { Strip } from '../charts/strip.tsx';
import { hrefOf, route } from '../client/router.ts';
import { shortSpace } from '../client/space-names.ts';
import { useGet } from '../client/use-load.ts';
import { clockSeconds, longDay, milliseconds, percent, whole } from '../format.ts';
import { Command } from '../parts/command.tsx';
import { Shown } from '../parts/states.tsx';
import { Figure, Legend } from '../parts/tables.tsx';
import { Section } from '../parts/section.tsx';
import { FRAME, STATES, VIEWS } from '../texts/frame.ts';
import { REQUEST as WORDS } from '../texts/request.ts';
import { Difference } from './conversation.tsx';
import { PriceSection, TimeSection } from './request-costs.tsx';
import { Diff, LongText } from './request-diff.tsx';

/** Draws one request: what the client sent, what svc sent, and what it cost. */
export function RequestView() {
  const id = route.value.query.get('id') ?? '';
  const loaded = useGet<RequestAnswer>('request', { id });
  return (
    <Shown of={loaded} title={VIEWS.request}>
      {(answer) => <One {...answer} />}
    </Shown>
  );
}

function One({ row, place, blocks, rates, kept }: RequestAnswer) {
  const notes = row.items ?? [unchanged(row)];
  return (
    <>
      <Path row={row} place={place} />
      <h1>{headline(row)}</h1>
      <p class="lead">
        {WORDS.request} <code>{row.id}</code>, {WORDS.when(longDay(row.at), clockSeconds(row.at))}.{' '}
        {WORDS.answered(stateText(row.end)?.meaning ?? row.end, row.status)}
      </p>
      <Figures row={row} />
      <About row={row} />
      <Section id="both" title={WORDS.both} beside={<Key notes={notes} />}>
        <RequestMap notes={notes} row={row} />
        <Diff
          notes={notes}
          blocks={blocks}
          came={row.originalInputTokens}
          went={row.forwardedInputTokens}
        />
      </Section>
      {kept !== null && <Whole kept={kept} />}
      <p class="lead">{WORDS.reportNote}</p>
      <p class="mend">
        <Command text={`svc requests ${row.id} --report`} copied={requestReport(row)} />
      </p>
      <div class="columns">
        <PriceSection row={row} rates={rates} />
        <TimeSection row={row} />
      </div>
    </>
  );
}

/** Returns a note for a request that was forwarded unchanged, for which the log has no notes. */
function unchanged({ originalInputTokens }: RequestRow): ItemNote {
  return { edit: 'same', count: 0, tokens: originalInputTokens };
}

function Path({ row, place }: Pick<RequestAnswer, 'row' | 'place'>) {
  return (
    <nav aria-label={FRAME.path}>
      <ol class="path">
        <li>
          <a href={hrefOf('requests')}>{VIEWS.requests}</a>
        </li>
        {row.space !== '' && (
          <li>
            <a href={hrefOf('memory', { space: row.space })}>{shortSpace(row.space)}</a>
          </li>
        )}
        {row.conversation !== '' && (
          <li>
            <a href={hrefOf('requests', { conversation: row.conversation })}>
              {WORDS.conversation(row.conversation)}
            </a>
          </li>
        )}
        <li>{place === null ? WORDS.request : WORDS.ofConversation(place.number, place.of)}</li>
      </ol>
    </nav>
  );
}

function headline(row: RequestRow): string {
  const parts: string[] = [];
  if (row.recalledTokens > 0)
    parts.push(row.recall === undefined ? WORDS.carried : WORDS.added(row.recall.refs.length));
  if (row.elidedItems > 0 && row.items !== undefined) parts.push(WORDS.leftOut(row.elidedItems));
  if (parts.length === 0) parts.push(WORDS.unchanged);
  const { price } = row;
  if (price !== undefined && price.direct > 0) {
    const share = (price.direct - price.paid) / price.direct;
    const rounded = Math.round(share * 100);
    if (rounded === 0) parts.push(WORDS.same);
    else parts.push(rounded > 0 ? WORDS.cheaper(share) : WORDS.dearer(-share));
  }
  return WORDS.sentence(parts);
}

function Figures({ row }: { readonly row: RequestRow }) {
  const { usage, price, originalInputTokens: came, forwardedInputTokens: went } = row;
  const first = tookMs(row) - (row.ms['relay'] ?? 0);
  return (
    <dl class="figures">
      <Figure
        name={WORDS.tokensIn}
        figure={came === went ? whole(came) : `${whole(came)} → ${whole(went)}`}
        text={
          came === went ? WORDS.asItCame : WORDS.changedBy(row.elidedTokens, row.recalledTokens)
        }
      />
      <Figure
        name={WORDS.tokensOut}
        figure={usage === undefined ? '–' : whole(usage.output)}
        text={WORDS.timing(milliseconds(first), milliseconds(tookMs(row)))}
      />
      <Figure
        name={WORDS.cache}
        figure={
          <>
            {percent(cacheShare([row]))} <small>{WORDS.cacheRead}</small>
          </>
        }
        text={
          usage === undefined
            ? WORDS.notCounted
            : WORDS.cacheParts(usage.cacheRead, usage.cacheWrite, usage.input)
        }
      />
      <Figure
        name={WORDS.price}
        figure={
          price === undefined ? (
            '–'
          ) : (
            <>
              {whole(price.paid)} <small>{WORDS.directAbout(price.direct)}</small>
            </>
          )
        }
        text={price === undefined ? WORDS.notCounted : <Difference {...price} />}
      />
    </dl>
  );
}

function About({ row }: { readonly row: RequestRow }) {
  const { memoryState, continuityState } = row;
  const isRecalled = memoryState === 'recalled';
  const isDegraded = memoryState.startsWith('degraded');
  const shortened = WORDS.shorteningStates[continuityState] ?? WORDS.bypassed;
  const kind = isRecalled ? 'state added' : isDegraded ? 'state warn' : 'state';
  return (
    <div class="about">
      <dl class="facts">
        <dt>{WORDS.client}</dt>
        <dd>
          {row.client}, {row.kind}
        </dd>
        <dt>{WORDS.model}</dt>
        <dd>{row.model || WORDS.noModel}</dd>
        <dt>{WORDS.project}</dt>
        <dd>
          {row.space === '' ? (
            STATES.none
          ) : (
            <a href={hrefOf('memory', { space: row.space })}>{shortSpace(row.space)}</a>
          )}
        </dd>
      </dl>
      <Fact name={WORDS.memory}>
        <span class={kind}>
          {isDegraded ? WORDS.degraded : (WORDS.memoryStates[memoryState] ?? memoryState)}
        </span>{' '}
        {row.memoryMode !== '' && WORDS.mode(row.memoryMode)}
        <Why state={memoryState} />
      </Fact>
      <Fact name={WORDS.shortening}>
        <span class="state">{shortened}</span> {WORDS.mode(row.compressionMode)}
        {row.readings !== undefined && <p class="small quiet">{WORDS.reread(row.readings)}</p>}
        <Why state={continuityState} />
      </Fact>
      {row.miss !== undefined && <Fact name={WORDS.missed}>{missText(row.miss)}</Fact>}
      {row.planLimit !== undefined && (
        <Fact name={WORDS.plan}>{planLimitText(row.planLimit, row.model)}</Fact>
      )}
      {row.lostThoughts !== undefined && (
        <Fact name={WORDS.thinking}>{lostThoughtsText(row.lostThoughts, row.prefixChangedBy)}</Fact>
      )}
    </div>
  );
}

function Fact(props: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <dl class="facts">
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </dl>
  );
}

/** Draws the explanation of a state, closed at first. */
function Why({ state }: { readonly state: string }) {
  const found = stateText(state);
  if (found === undefined) return null;
  return (
    <details class="why">
      <summary>{WORDS.why}</summary>
      <p>
        {found.meaning} {found.advice} {WORDS.state} <code>{state}</code>.
      </p>
    </details>
  );
}

function Key({ notes }: { readonly notes: readonly ItemNote[] }) {
  const sum = (edit: ItemNote['edit'], size: (note: ItemNote) => number): number =>
    notes.filter((note) => note.edit === edit).reduce((total, note) => total + size(note), 0);
  const out = sum('stub', ({ tokens }) => tokens) + sum('left_out', ({ tokens }) => tokens);
  const stubs = sum('stub', ({ after = 0 }) => after);
  const added = sum('block', ({ after = 0 }) => after);
  return (
    <Legend
      of={[
        ['f-same', WORDS.keySame(sum('same', ({ tokens }) => tokens))],
        ...(out > 0 ? [['f-gone', WORDS.keyOut(out, stubs)] as const] : []),
        ...(added > 0 ? [['f-added', WORDS.keyAdded(added)] as const] : []),
      ]}
    />
  );
}

const FILLS = { same: 'f-same', stub: 'f-gone', left_out: 'f-gone', block: 'f-added' } as const;

function RequestMap(props: { readonly notes: readonly ItemNote[]; readonly row: RequestRow }) {
  const { notes, row } = props;
  const came = notes.map(({ tokens, edit }) => ({ size: tokens, fill: FILLS[edit] }));
  const went = notes.map(({ tokens, after, edit }) => ({
    size: after ?? tokens,
    fill: FILLS[edit],
  }));
  const of = Math.max(sizeOf(came), sizeOf(went));
  return (
    <div class="map">
      <span>{WORDS.clientSent}</span>
      <Strip parts={came} of={of} label={WORDS.mapSent} />
      <span class="n">{short(row.originalInputTokens)}</span>
      <span>{WORDS.wentOut}</span>
      <Strip parts={went} of={of} label={WORDS.mapWent} />
      <span class="n">{short(row.forwardedInputTokens)}</span>
    </div>
  );
}

function sizeOf(parts: readonly { readonly size: number }[]): number {
  return parts.reduce((sum, { size }) => sum + size, 0);
}

function Whole({ kept: { sent, went } }: { readonly kept: KeptTexts }) {
  return (
    <Section id="whole" title={WORDS.wholeTitle} beside={<p>{WORDS.wholeNote}</p>}>
      <div class="columns whole">
        <div>
          <h3>{WORDS.clientSent}</h3>
          <LongText text={readable(sent)} />
        </div>
        <div>
          <h3>{WORDS.wentOut}</h3>
          <LongText text={readable(went)} />
        </div>
      </div>
    </Section>
  );
}

function readable(text: string): string {
  const value = parseJson(text);
  return value === undefined ? text : JSON.stringify(value, null, 1);
}
