import { signedPercent } from '../format.ts';

/** A share of direct's price: cheaper, the same, dearer. The sign says it too. */
export function Cost({ share }: { readonly share: number | undefined }) {
  const rounded = Math.round((share ?? 0) * 100);
  const dear = rounded >= 3 ? 'dearer' : 'quiet';
  return <span class={rounded <= -2 ? 'good' : dear}>{signedPercent(share)}</span>;
}
