import { stateText } from '../../core/plan/states.ts';
import { TEXTS } from '../texts/texts.ts';

/** The meaning of a state, one click away. */
export function Why({ state }: { readonly state: string }) {
  const found = stateText(state);
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
