import { tookMs } from '../../core/meter/figures.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import type { RequestAnswer } from '../../ports/ui-api.ts';
import { Strip, Swatch } from '../charts/strip.tsx';
import { milliseconds, whole, withTenth } from '../format.ts';
import { Heads } from '../parts/tables.tsx';
import { Empty } from '../parts/states.tsx';
import { Section } from '../parts/section.tsx';
import { REQUEST as WORDS } from '../texts/request.ts';

/** Draws the price of a request's input, in tokens. */
export function PriceSection({ row: { price, usage }, rates }: PriceProps) {
  const most = Math.max(price?.paid ?? 0, price?.direct ?? 0);
  return (
    <Section id="price" title={WORDS.priceTitle} beside={<p>{WORDS.priceUnit}</p>}>
      {price === undefined || usage === undefined ? (
        <Empty>{WORDS.notCounted}</Empty>
      ) : (
        <>
          <div class="map">
            <span>{WORDS.withSvc}</span>
            <Strip parts={[{ size: price.paid, fill: 'f-paid' }]} of={most} />
            <span class="n">{whole(price.paid)}</span>
            <span>{WORDS.direct}</span>
            <Strip parts={[{ size: price.direct, fill: 'f-same' }]} of={most} />
            <span class="n">{whole(price.direct)}</span>
          </div>
          <PriceTable price={price} usage={usage} rates={rates} />
          <p class="small quiet lead">{WORDS.priceNote}</p>
        </>
      )}
    </Section>
  );
}

interface PriceProps {
  readonly row: RequestRow;
  readonly rates: RequestAnswer['rates'];
}

type PriceTableProps = Pick<Required<RequestRow>, 'price' | 'usage'> & Pick<PriceProps, 'rates'>;

function PriceTable({ price, usage, rates }: PriceTableProps) {
  const { input, rate, tokens, cost } = WORDS.priceHeads;
  const { input: fresh, cacheRead, cacheWrite, cacheWriteHour = 0 } = usage;
  return (
    <table>
      <Heads of={[input, { number: rate }, { number: tokens }, { number: cost }]} />
      <tbody>
        <PriceRow name={WORDS.fresh} tokens={fresh} rate={1} fill="f-paid" />
        <PriceRow name={WORDS.read} tokens={cacheRead} rate={rates.read} fill="f-cache" />
        <PriceRow
          name={WORDS.written}
          tokens={cacheWrite - cacheWriteHour}
          rate={rates.write}
          fill="f-cache"
          isPale
        />
        {cacheWriteHour > 0 && (
          <PriceRow
            name={WORDS.writtenHour}
            tokens={cacheWriteHour}
            rate={rates.writeHour}
            fill="f-cache"
            isPale
          />
        )}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">{WORDS.together}</th>
          <td />
          <td class="n">{whole(fresh + cacheRead + cacheWrite)}</td>
          <td class="n">{whole(price.paid)}</td>
        </tr>
        <tr>
          <th scope="row">{WORDS.directModel}</th>
          <td />
          <td />
          <td class="n">{whole(price.direct)}</td>
        </tr>
      </tfoot>
    </table>
  );
}

function PriceRow(props: {
  readonly name: string;
  readonly tokens: number;
  readonly rate: number;
  readonly fill: string;
  readonly isPale?: boolean;
}) {
  const { name, tokens, rate, fill, isPale = false } = props;
  return (
    <tr>
      <th scope="row">
        <Swatch fill={fill} isPale={isPale} />
        {name}
      </th>
      <td class="n quiet">{WORDS.rate(rate)}</td>
      <td class="n quiet">{whole(tokens)}</td>
      <td class="n">{whole(tokens * rate)}</td>
    </tr>
  );
}

/** The steps that svc itself takes. The others, `head` and `relay`, wait for the provider. */
const OWN = ['body', 'read', 'recall', 'plan'];
const FILLS: Readonly<Record<string, { readonly fill: string; readonly isPale?: boolean }>> = {
  body: { fill: 'f-accent', isPale: true },
  read: { fill: 'f-accent', isPale: true },
  recall: { fill: 'f-added' },
  plan: { fill: 'f-accent' },
  head: { fill: 'f-paid' },
  relay: { fill: 'f-same' },
};

function partOf([name, ms]: readonly [string, number]) {
  return { size: ms, ...(FILLS[name] ?? { fill: 'f-same' }) };
}

export function TimeSection({ row }: { readonly row: RequestRow }) {
  const steps = Object.entries(row.ms);
  const all = tookMs(row);
  const own = steps.filter(([name]) => OWN.includes(name));
  const ownMs = own.reduce((sum, [, ms]) => sum + ms, 0);
  const told = own.map(([name, ms]) => `${name} ${withTenth(ms)} ms`).join(', ');
  return (
    <Section
      id="steps"
      title={WORDS.timeTitle}
      beside={<p>{WORDS.timeShare(milliseconds(ownMs), milliseconds(all))}</p>}
    >
      <div class="steps">
        <Strip parts={steps.map(partOf)} of={all} />
        <svg class="zoom" preserveAspectRatio="none" viewBox="0 0 1000 20" aria-hidden="true">
          <path d={`M0 0H${Math.max(3, (ownMs / Math.max(1, all)) * 1000)}L1000 20H0Z`} />
        </svg>
        <Strip parts={own.map(partOf)} of={ownMs} label={WORDS.stepsOwn(told)} />
      </div>
      <table>
        <tbody>
          {steps.map(([name, ms]) => (
            <tr key={name}>
              <th scope="row">
                <Swatch {...(FILLS[name] ?? { fill: 'f-same' })} />
                {WORDS.steps[name] ?? name}
              </th>
              <td class="n">{withTenth(ms)} ms</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{WORDS.together}</th>
            <td class="n">{withTenth(all)} ms</td>
          </tr>
        </tfoot>
      </table>
    </Section>
  );
}
