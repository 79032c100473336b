import { findStates } from '../../core/plan/states.ts';
import { TEXTS } from '../texts/texts.ts';

/** A state in the words of `svc explain`, one click away. */
export function Why({ state }: { readonly state: string }) {
  const found = findStates(state).find(({ name }) => name === state);
  if (found === undefined) return null;
  return (
    <details class="why">
      <summary>{TEXTS.request.why}</summary>
      <p>
        {found.meaning} {found.advice} {TEXTS.request.state} <code>{state}</code>.
      </p>
    </details>
  );
}
