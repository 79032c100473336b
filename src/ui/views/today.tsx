import type { ComponentChildren } from 'preact';
import type { TodayAnswer } from '../../ports/ui-api.ts';
import { hrefOf } from '../client/router.ts';
import { useGet } from '../client/use-load.ts';
import { moment, percent, whole } from '../format.ts';
import { TEXTS } from '../texts/texts.ts';

/** What happened since midnight, in four figures: recalled, saved, cache misses, and the plan that is left. */

const WORDS = TEXTS.now.today;

export function TodaySums(props: {
  readonly version: string;
  /** Below the headline. */
  readonly children: ComponentChildren;
}) {
  const loaded = useGet<TodayAnswer>('today', {}, { version: props.version });
  if (loaded.state !== 'ready') {
    return (
      <>
        <h1>{TEXTS.views.now}</h1>
        {props.children}
        <dl class="figures" aria-busy="true" />
      </>
    );
  }
  const { requests, asked, recalled, degraded, paid, direct, misses, quota, culprits } =
    loaded.value;
  const kept = direct - paid;
  return (
    <>
      <h1>{TEXTS.now.headline(direct === 0 ? undefined : kept / direct, requests)}</h1>
      {props.children}
      <dl class="figures" aria-label={WORDS.figures}>
        <Figure
          name={WORDS.recalled}
          figure={WORDS.recalledOf(recalled, asked)}
          text={WORDS.prompts(requests, degraded)}
        />
        <Figure
          name={kept < 0 ? WORDS.more : WORDS.saved}
          figure={direct === 0 ? '–' : percent(Math.abs(kept) / direct)}
          text={direct === 0 ? WORDS.noCounts : WORDS.of(paid, direct)}
        />
        <Figure
          name={WORDS.misses}
          figure={whole(misses.times)}
          text={WORDS.missed(misses.tokens, misses.cause)}
        />
        <Quota quota={quota} />
      </dl>
      {culprits.length > 0 && (
        <section aria-labelledby="missed">
          <h2 id="missed">{WORDS.culprits}</h2>
          <ol class="small">
            {culprits.map(({ cause, times, tokens }) => (
              <li key={cause}>{WORDS.culprit(cause, times, tokens)}</li>
            ))}
          </ol>
          <p class="small lead">
            <a href={hrefOf('requests', { missed: '1' })}>{WORDS.allMissed}</a>
          </p>
        </section>
      )}
    </>
  );
}

function Quota({ quota }: Pick<TodayAnswer, 'quota'>) {
  const windows = quota[0]?.windows ?? [];
  const [least] = windows.toSorted((one, other) => other.share - one.share);
  if (least === undefined) return <Figure name={WORDS.quota} figure="–" text={WORDS.noQuota} />;
  const texts = windows.map(({ name, share, resetAt }) => {
    const reset = resetAt === null ? null : moment(resetAt);
    return WORDS.window(name, percent(1 - share), reset);
  });
  return <Figure name={WORDS.quota} figure={percent(1 - least.share)} text={WORDS.left(texts)} />;
}

function Figure(props: { readonly name: string; readonly figure: string; readonly text: string }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd class="figure">{props.figure}</dd>
      <dd>{props.text}</dd>
    </div>
  );
}
