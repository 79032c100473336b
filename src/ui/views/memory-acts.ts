import type { ForgotAnswer } from '../../ports/ui-api.ts';
import { post } from '../client/api.ts';
import { noteFailure } from '../client/session.ts';
import { happened } from '../parts/notice.tsx';
import { failureText } from '../parts/states.tsx';
import { MEMORY as WORDS } from '../texts/memory.ts';

/** Runs a change, and shows the text that it returns, or its failure. Returns false if it failed. */
export async function act(work: () => Promise<string | undefined>): Promise<boolean> {
  try {
    const text = await work();
    if (text !== undefined) happened.value = { text };
    return true;
  } catch (error) {
    noteFailure(error);
    happened.value = { text: failureText(error), isBad: true };
    return false;
  }
}

export interface Forgetting {
  readonly space?: string;
  readonly refs?: readonly string[];
}

export function forget(what: Forgetting, reload: () => void): Promise<boolean> {
  return act(async () => {
    const { forgotten, undo, undoMs } = await post<ForgotAnswer>('forget', what);
    const text = WORDS.forgotten(forgotten);
    reload();
    if (undo === null) return text;
    happened.value = {
      text,
      undo: { until: Date.now() + undoMs, run: () => void takeBack(undo, reload) },
    };
    return undefined;
  });
}

function takeBack(undo: string, reload: () => void): Promise<boolean> {
  return act(async () => {
    const { restored } = await post<{ readonly restored: number }>('undo', { undo });
    reload();
    return WORDS.undone(restored);
  });
}
