import { cacheShare, short, tookMs } from '../../core/meter/figures.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import type { RowsAnswer } from '../../ports/ui-api.ts';
import { Curve } from '../charts/curve.tsx';
import { hrefOf } from '../client/router.ts';
import { shortSpace } from '../client/space-names.ts';
import { useGet } from '../client/use-load.ts';
import { clock, clockSeconds, milliseconds, moment, percent, signedPercent } from '../format.ts';
import { Heads } from '../parts/tables.tsx';
import { useRows } from '../parts/later.tsx';
import { Shown } from '../parts/states.tsx';
import { NOW } from '../texts/now.ts';
import { batchesOf, blocksOf, type Conversation, curveOf, priceOf } from './activity.ts';

/** Bound on each of the lists of requests, batches and blocks. */
const SHOWN_MAX = 8;

/** Draws the requests, the cost, the batches and the blocks of a conversation. */
export function ConversationDetails({ of: one }: { readonly of: Conversation }) {
  const newest = one.rows[0]?.id ?? '';
  const loaded = useGet<RowsAnswer>('conversation', { id: one.key }, { version: newest });
  return (
    <Shown of={loaded}>
      {({ rows }) => (
        <div class="inside">
          <div>
            <h3>{NOW.requests}</h3>
            <RequestTable rows={rows.slice(0, SHOWN_MAX)} />
            {rows.length > SHOWN_MAX && (
              <p class="small quiet lead">
                <a href={hrefOf('requests', { conversation: one.key })}>
                  {NOW.allRequests(rows.length)}
                </a>
              </p>
            )}
          </div>
          <div>
            <CostSoFar rows={rows} />
            <Batches rows={rows} />
            <Blocks rows={rows} />
          </div>
        </div>
      )}
    </Shown>
  );
}

export function RequestTable(props: {
  readonly rows: readonly RequestRow[];
  /** True if the rows may be of several days and conversations. */
  readonly isLong?: boolean;
}) {
  const { rows, isLong = false } = props;
  const { time, whose, what, tokens, cache, took } = NOW.requestHeads;
  const drawn = useRows(rows);
  return (
    <table class="stack brief">
      <Heads
        of={[
          time,
          ...(isLong ? [whose] : []),
          what,
          { number: tokens },
          { number: cache },
          { number: took },
        ]}
      />
      <tbody>
        {drawn.map((row) => (
          <tr key={row.id}>
            <td class="quiet lead-cell">
              <a href={hrefOf('request', { id: row.id })}>
                <span class="for-readers">{NOW.request}</span>{' '}
                {isLong ? moment(row.at) : clockSeconds(row.at)}
              </a>
            </td>
            {isLong && (
              <td class="whose cut">
                {shortSpace(row.space) || NOW.noProject}{' '}
                <span class="quiet">
                  {row.client}, {row.model}
                </span>
              </td>
            )}
            <td class="did">
              <MemoryDid row={row} />
            </td>
            <td class="n sizes">{sizeText(row)}</td>
            <td class="n">{percent(cacheShare([row]))}</td>
            <td class="n quiet">{milliseconds(tookMs(row))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function MemoryDid({ row }: { readonly row: RequestRow }) {
  if (row.memoryState.startsWith('degraded')) {
    return <span class="state warn">{row.memoryState}</span>;
  }
  if (row.status >= 400) return <span class="state bad">{row.status}</span>;
  if (row.memoryState === 'recalled') {
    const count = row.recall?.refs.length;
    return (
      <>
        <span class="state added">{NOW.recalled}</span>{' '}
        {count === undefined ? NOW.carried : count > 0 && NOW.memories(count)}
      </>
    );
  }
  const text = row.elidedItems > 0 ? NOW.staysOut(row.elidedItems) : NOW.unchanged;
  return <span class="quiet">{row.kind === 'main' ? text : row.kind}</span>;
}

function CostSoFar(props: { readonly rows: readonly RequestRow[] }) {
  const points = curveOf(props.rows);
  const { paid, direct } = priceOf(props.rows);
  return (
    <>
      <h3>{NOW.cost}</h3>
      {points.length > 1 && (
        <Curve points={points} label={NOW.curve(points.length, paid, direct)} />
      )}
      <p class="small">
        {direct === 0 ? (
          NOW.noPrice
        ) : (
          <>
            {NOW.costText(paid, direct)}: <Difference paid={paid} direct={direct} />.
          </>
        )}
      </p>
    </>
  );
}

/** Shows the difference between the paid and the direct price, in tokens and as a share of the direct price. */
export function Difference({ paid, direct }: { readonly paid: number; readonly direct: number }) {
  const kept = direct - paid;
  const share = Math.abs(kept) / Math.max(1, direct);
  return kept >= 0 ? (
    <span class="good">{NOW.kept(kept, share)}</span>
  ) : (
    <span class="dearer">{NOW.dearer(-kept, share)}</span>
  );
}

/** Draws a share of the direct price. Its sign and colour say whether svc cost less (-) or more. */
export function Cost({ share }: { readonly share: number | undefined }) {
  const rounded = Math.round((share ?? 0) * 100);
  const dear = rounded >= 3 ? 'dearer' : 'quiet';
  return <span class={rounded <= -2 ? 'good' : dear}>{signedPercent(share)}</span>;
}

/** Returns the tokens that svc received and sent: "85k → 12k"; one number if they are equal. */
export function sizeText({ originalInputTokens: came, forwardedInputTokens: went }: RequestRow) {
  return came === went ? short(came) : `${short(came)} → ${short(went)}`;
}

function Batches({ rows }: { readonly rows: readonly RequestRow[] }) {
  const batches = batchesOf(rows).slice(0, SHOWN_MAX);
  return (
    <>
      <h3>{NOW.batches}</h3>
      {batches.length === 0 && <p class="small quiet">{NOW.noBatch}</p>}
      <ul class="plain">
        {batches.map(({ id, at, items, tokens }) => (
          <li key={id}>
            <a href={hrefOf('request', { id })}>{NOW.batch(clock(at), items, tokens)}</a>
          </li>
        ))}
      </ul>
    </>
  );
}

function Blocks({ rows }: { readonly rows: readonly RequestRow[] }) {
  const blocks = blocksOf(rows).slice(0, SHOWN_MAX);
  return (
    <>
      <h3>{NOW.blocks}</h3>
      {blocks.length === 0 && <p class="small quiet">{NOW.noBlock}</p>}
      <ul class="plain">
        {blocks.map((row) => (
          <li key={row.id}>
            <a href={hrefOf('request', { id: row.id })}>
              {NOW.block(clock(row.at), row.recall?.refs.length ?? 0)}
            </a>
            <span>{NOW.blockTokens(row.recalledTokens)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
