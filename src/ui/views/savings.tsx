import { dayName, dollars, short } from '../../core/meter/figures.ts';
import { useState } from 'preact/hooks';
import { thoughtSumsText } from '../../core/plan/states.ts';
import type { SavingsAnswer, SavingsSum } from '../../ports/ui-api.ts';
import { ShareCard } from '../charts/card.tsx';
import { DaysChart } from '../charts/days.tsx';
import { Strip } from '../charts/strip.tsx';
import { hrefOf, route } from '../client/router.ts';
import { shortSpace } from '../client/space-names.ts';
import { askAhead, useGet } from '../client/use-load.ts';
import { atOfDay, day, longDay, narrowDay, percent, signedPercent, whole } from '../format.ts';
import { FactTable, Heads, Legend } from '../parts/tables.tsx';
import { Later } from '../parts/later.tsx';
import { Shown } from '../parts/states.tsx';
import { Section } from '../parts/section.tsx';
import { VIEWS } from '../texts/frame.ts';
import { SAVINGS as WORDS } from '../texts/savings.ts';
import { Cost } from './conversation.tsx';
import { added, daysOf, groupedBy, moneyOf, shareOf, type Total, totalOf } from './savings-sums.ts';

const DAYS_DEFAULT = 14;

/** Draws what svc saved in the chosen number of days, and the numbers behind it. */
export function SavingsView() {
  const asked = Number(route.value.query.get('days'));
  const [days] = WORDS.scopes.find(([number]) => number === asked) ?? [DAYS_DEFAULT];
  const loaded = useGet<SavingsAnswer>('savings', { days });
  return (
    <>
      <div class="scope">
        <div class="choice" role="group" aria-label={WORDS.days}>
          {WORDS.scopes.map(([number, name]) => (
            <a
              key={number}
              href={hrefOf('savings', { days: number })}
              aria-current={number === days ? 'true' : undefined}
            >
              {name}
            </a>
          ))}
        </div>
        <span class="small quiet">{WORDS.everything}</span>
      </div>
      <Shown of={loaded} title={VIEWS.savings}>
        {(answer) => <Sums answer={answer} days={days} />}
      </Shown>
    </>
  );
}

/** Makes the call with which this view opens, in advance. */
export function askSavingsAhead(): Promise<unknown> {
  return askAhead('savings', { days: DAYS_DEFAULT });
}

interface ScopeProps {
  readonly answer: SavingsAnswer;
  readonly days: number;
}

function Sums({ answer, days }: ScopeProps) {
  const { sums } = answer;
  const total = totalOf('', sums);
  const when = WORDS.when(days);
  if (total.direct === 0) {
    return (
      <>
        <h1 class="hero">{WORDS.none(when)}</h1>
        <p class="lead">{WORDS.noneText}</p>
      </>
    );
  }
  return (
    <>
      <h1 class="hero">{headline(total, when)}</h1>
      <Lead total={total} sums={sums} />
      <ByDay answer={answer} days={days} />
      <Later>
        <Rest total={total} answer={answer} days={days} />
      </Later>
    </>
  );
}

/** Draws the numbers below the chart. */
function Rest({ answer, days, total }: ScopeProps & { readonly total: Total }) {
  const { sums, since } = answer;
  const first = dayName(since);
  return (
    <>
      <div class="columns">
        <Ranked sums={sums} by="space" first={first} />
        <Ranked sums={sums} by="model" first={first} />
        <Ranked sums={sums} by="client" first={first} />
        <Counted sums={sums} />
      </div>
      <div class="columns">
        <Card total={total} days={days} />
        <Section id="how" title={WORDS.how}>
          {WORDS.howText.map((text) => (
            <p key={text} class="lead">
              {text}
            </p>
          ))}
        </Section>
      </div>
    </>
  );
}

function headline(total: Total, when: string): string {
  const share = shareOf(total) ?? 0;
  const rounded = Math.round(share * 100);
  if (rounded === 0) return WORDS.same(when);
  return rounded < 0 ? WORDS.less(when, -share) : WORDS.more(when, share);
}

function Lead({ total, sums }: { readonly total: Total; readonly sums: readonly SavingsSum[] }) {
  const money = moneyOf(sums);
  // Do not show prices below a cent.
  const isCounted = money !== undefined && money.direct >= 0.01;
  return (
    <p class="lead">
      {WORDS.lead(short(total.paid), short(total.direct), total.requests)}{' '}
      {isCounted && WORDS.money(dollars(money.paid), dollars(money.direct))} {WORDS.output}
    </p>
  );
}

function changeText({ paid, direct }: Pick<Total, 'paid' | 'direct'>): string {
  return paid <= direct ? WORDS.kept(short(direct - paid)) : WORDS.dearer(short(paid - direct));
}

function ByDay({ answer: { sums, since }, days }: ScopeProps) {
  const [isTable, setTable] = useState(false);
  const totals = daysOf(sums, { since, days });
  const bars = totals.map((total) => {
    const at = atOfDay(total.name);
    const say = signedPercent(shareOf(total));
    return {
      key: total.name,
      paid: total.paid,
      direct: total.direct,
      href: hrefOf('requests', { first: total.name }),
      name: narrowDay(at),
      say,
      label: WORDS.bar({
        share: say,
        date: longDay(at),
        paid: short(total.paid),
        direct: short(total.direct),
        change: changeText(total),
      }),
    };
  });
  return (
    <Section
      id="byday"
      title={WORDS.byDay}
      beside={
        <Legend
          of={[
            ['f-paid', WORDS.keyPaid],
            ['f-kept', WORDS.keyKept],
            ['f-warn', WORDS.keyOver],
          ]}
        />
      }
    >
      <div class="wide chart-room" tabIndex={0} role="group" aria-label={WORDS.chart}>
        <DaysChart bars={bars} labelledBy="byday" write={short} />
      </div>
      <details class="twin" onToggle={(event) => setTable(event.currentTarget.open)}>
        <summary class="turn">{WORDS.table}</summary>
        {isTable && (
          <DayTable
            totals={totals.filter(({ requests }) => requests > 0)}
            all={totalOf('', sums)}
          />
        )}
      </details>
    </Section>
  );
}

function DayTable(props: { readonly totals: readonly Total[]; readonly all: Total }) {
  const { totals, all } = props;
  const { day: name, requests, paid, direct, difference } = WORDS.heads;
  const cells = (total: Total) => (
    <>
      <td class="n" data-label={requests}>
        {whole(total.requests)}
      </td>
      <td class="n" data-label={paid}>
        {whole(total.paid)}
      </td>
      <td class="n" data-label={direct}>
        {whole(total.direct)}
      </td>
      <td class="n" data-label={difference}>
        <Cost share={shareOf(total)} />
      </td>
    </>
  );
  return (
    <table class="stack">
      <Heads of={[name, ...[requests, paid, direct, difference].map((number) => ({ number }))]} />
      <tbody>
        {totals.toReversed().map((total) => (
          <tr key={total.name}>
            <th scope="row" class="lead-cell">
              <a href={hrefOf('requests', { first: total.name })}>{longDay(atOfDay(total.name))}</a>
            </th>
            {cells(total)}
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">{WORDS.together}</th>
          {cells(all)}
        </tr>
      </tfoot>
    </table>
  );
}

const RANKED_MAX = 8;

interface RankedProps {
  readonly sums: readonly SavingsSum[];
  readonly by: 'space' | 'model' | 'client';
  /** The first of the chosen days, such as 2026-11-20. */
  readonly first: string;
}

function Ranked({ sums, by, first }: RankedProps) {
  const totals = groupedBy(sums, (sum) => sum[by]).slice(0, RANKED_MAX);
  const most = Math.max(1, ...totals.map(({ paid, direct }) => Math.max(paid, direct)));
  const { name, share, paid, difference } = WORDS.rankedHeads;
  const last = dayName(Date.now());
  return (
    <section aria-labelledby={`by-${by}`}>
      <h2 id={`by-${by}`}>{WORDS.by[by]}</h2>
      <table class="ranked">
        <Heads of={[name, { hidden: share }, { number: paid }, { number: difference }]} />
        <tbody>
          {totals.map((total) => (
            <tr key={total.name}>
              <th scope="row" class="cut">
                {total.name === '' ? (
                  WORDS.noName
                ) : (
                  <a href={hrefOf('requests', { [by]: total.name, first, last })}>
                    {by === 'space' ? shortSpace(total.name) : total.name}
                  </a>
                )}
              </th>
              <td>
                <Strip
                  of={most}
                  parts={[
                    { size: Math.min(total.paid, total.direct), fill: 'f-paid' },
                    { size: total.direct - total.paid, fill: 'f-added' },
                    { size: total.paid - total.direct, fill: 'f-warn' },
                  ]}
                />
              </td>
              <td class="n">{short(total.paid)}</td>
              <td class="n">
                <Cost share={shareOf(total)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Counted({ sums }: { readonly sums: readonly SavingsSum[] }) {
  const { what, tokens } = WORDS.countedHeads;
  const readings = added(sums, (sum) => sum.readings);
  const rows: readonly (readonly [string, number])[] = [
    [WORDS.fresh, added(sums, ({ usage }) => usage.input)],
    [WORDS.cacheRead, added(sums, ({ usage }) => usage.cacheRead)],
    [WORDS.cacheWritten, added(sums, ({ usage }) => usage.cacheWrite)],
    [WORDS.leftOut, added(sums, ({ elidedTokens }) => elidedTokens)],
    [WORDS.added, added(sums, ({ recalledTokens }) => recalledTokens)],
    [WORDS.again(readings), added(sums, ({ againPrice }) => againPrice)],
  ];
  const prompts = added(sums, (sum) => sum.prompts);
  const lost = thoughtSumsText({
    dropped: added(sums, ({ thoughts }) => thoughts.dropped),
    unfit: added(sums, ({ thoughts }) => thoughts.unfit),
    refused: added(sums, ({ thoughts }) => thoughts.refused),
    bySvc: added(sums, ({ thoughts }) => thoughts.bySvc),
  });
  return (
    <Section id="counted" title={WORDS.counted}>
      <FactTable
        heads={[what, { number: tokens }]}
        rows={rows.map(([name, value]) => [name, short(value)] as const)}
      />
      {prompts > 0 && (
        <p class="small quiet lead">
          {WORDS.used(
            prompts,
            added(sums, ({ promptsUsed }) => promptsUsed),
          )}
        </p>
      )}
      {lost !== undefined && <p class="small quiet lead">{lost}</p>}
    </Section>
  );
}

function Card({ total, days }: { readonly total: Total; readonly days: number }) {
  const share = shareOf(total) ?? 0;
  const rounded = Math.round(share * 100);
  const figure = rounded === 0 ? WORDS.cardSame : percent(Math.abs(share));
  const today = day(Date.now());
  return (
    <Section id="share" title={WORDS.card} beside={<p>{WORDS.cardSays}</p>}>
      <ShareCard
        paidShare={total.paid / Math.max(1, total.direct)}
        texts={{
          figure,
          text: WORDS.cardText(rounded),
          lines: [WORDS.cardScope(days, today, total.requests), WORDS.cardModel],
          label: WORDS.cardLabel(signedPercent(share), days, total.requests),
          saveSvg: WORDS.saveSvg,
          savePng: WORDS.savePng,
        }}
      />
    </Section>
  );
}
