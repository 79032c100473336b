import { useState } from 'preact/hooks';
import type { WeighedMemory } from '../../ports/memory-desk.ts';
import { type LookAnswer, PROMPT_CHARS_MAX } from '../../ports/ui-api.ts';
import { Strip } from '../charts/strip.tsx';
import { post } from '../client/api.ts';
import { hrefWith, route } from '../client/router.ts';
import { shortSpace } from '../client/space-names.ts';
import { useLoad } from '../client/use-load.ts';
import { day, milliseconds } from '../format.ts';
import { AskForm } from '../parts/form.tsx';
import { Heads } from '../parts/tables.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { Section } from '../parts/section.tsx';
import { MEMORY as WORDS } from '../texts/memory.ts';

/** Loads what recall finds for a prompt: the best candidates, and which of them it would add. */

function useLook(space: string, prompt: string, version: number) {
  return useLoad(
    `look ${space} ${prompt}`,
    () => post<LookAnswer>('look', { space, prompt }),
    version,
  );
}

interface LookProps {
  readonly space: string;
  readonly prompt: string;
  readonly version: number;
}

export function Looked({ space, prompt, version }: LookProps) {
  const loaded = useLook(space, prompt, version);
  return (
    <section aria-labelledby="found">
      <Shown of={loaded}>{(answer) => <Weighed answer={answer} />}</Shown>
    </section>
  );
}

function Weighed({ answer }: { readonly answer: LookAnswer }) {
  const own = answer.weighed.filter(({ verdict }) => verdict !== 'other_project');
  const added = own.filter(({ verdict }) => verdict === 'added');
  const rest = own.filter(({ verdict }) => verdict !== 'added');
  return (
    <>
      <div class="head">
        <h2 id="found">{WORDS.found(own.length)}</h2>
        <p>{WORDS.asRecall(milliseconds(answer.ms))}</p>
      </div>
      {own.length === 0 && <Empty>{WORDS.nothingWeighed}</Empty>}
      <ol>
        {added.map((one) => (
          <Hit key={one.ref + one.text} one={one} />
        ))}
        {own.length > 0 && <li class="limit">{WORDS.limit(answer.needed)}</li>}
        {rest.map((one) => (
          <Hit key={one.ref + one.text} one={one} isBelow />
        ))}
      </ol>
      <p class="small quiet lead">
        {added.length === 0 ? WORDS.wouldAddNone : WORDS.wouldAdd(added.length, answer.tokensMax)}
      </p>
      <AgentLines answer={answer} />
    </>
  );
}

function Hit({
  one,
  isBelow = false,
}: {
  readonly one: WeighedMemory;
  readonly isBelow?: boolean;
}) {
  const { ref, space, text, score, role, at, client } = one;
  const isOpen = route.value.query.get('ref') === ref;
  const classes = ['hit', ...(isBelow ? ['below'] : []), ...(isOpen ? ['chosen'] : [])];
  return (
    <li class={classes.join(' ')}>
      <span class="score">
        {score.toFixed(2)}
        <Strip
          isThin
          of={1}
          parts={[{ size: Math.min(1, score), fill: isBelow ? 'f-gone' : 'f-added' }]}
        />
      </span>
      <div>
        <p dir="auto">
          <a href={hrefWith({ ref, space })} aria-current={isOpen ? 'true' : undefined}>
            {text}
          </a>
        </p>
        <p class="meta">
          {WORDS.by(role === 'user' ? WORDS.you : WORDS.assistant, day(at), client)}
          {isBelow && `. ${WORDS.verdicts[one.verdict]}.`}
        </p>
      </div>
    </li>
  );
}

function AgentLines({ answer: { exchanges } }: { readonly answer: LookAnswer }) {
  if (exchanges.length === 0) return <p class="small quiet">{WORDS.agentQuiet}</p>;
  return (
    <>
      <h3>{WORDS.agentGets}</h3>
      <ul class="plain">
        {exchanges.map(({ ref, at, quotes }) => (
          <li key={ref}>
            <span dir="auto">{quotes.map(({ text }) => text).join(' … ')}</span>
            <span class="nowrap">{day(at)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

export function WhyNot({ space, version }: { readonly space: string; readonly version: number }) {
  const [prompt, setPrompt] = useState('');
  return (
    <Section id="why" title={WORDS.whyTitle} beside={<p>{WORDS.whyText}</p>}>
      <AskForm
        id="w"
        label={WORDS.whyLabel}
        button={WORDS.whyButton}
        charsMax={PROMPT_CHARS_MAX}
        ask={setPrompt}
      />
      {prompt !== '' && <Verdicts space={space} prompt={prompt} version={version} />}
    </Section>
  );
}

function Verdicts({ space, prompt, version }: LookProps) {
  const loaded = useLook(space, prompt, version);
  const { heads } = WORDS;
  return (
    <Shown of={loaded}>
      {(answer) => (
        <>
          {answer.weighed.length === 0 && <Empty>{WORDS.nothingWeighed}</Empty>}
          <table class="stack verdicts">
            <Heads of={[heads.memory, { number: heads.score }, heads.verdict, heads.from]} />
            <tbody>
              {answer.weighed.map((one) => (
                <tr key={one.ref + one.text}>
                  <td class="lead-cell" dir="auto">
                    <a href={hrefWith({ ref: one.ref, space: one.space })}>{one.text}</a>
                  </td>
                  <td data-label={heads.score} class="n">
                    {one.score.toFixed(2)}
                  </td>
                  <td data-label={heads.verdict}>
                    {one.verdict === 'added' ? (
                      <span class="state added">{WORDS.verdicts.added}</span>
                    ) : (
                      WORDS.verdicts[one.verdict]
                    )}
                  </td>
                  <td data-label={heads.from} class="quiet">
                    {day(one.at)}, {shortSpace(one.space)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          <AgentLines answer={answer} />
        </>
      )}
    </Shown>
  );
}
