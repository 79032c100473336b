import { dataFolder } from '../../adapters/files/data-folder.ts';
import { FileError } from '../../adapters/files/file-error.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { lateCaptures } from '../proxy/late-captures.ts';
import type { Check } from './doctor-checks.ts';

/** Captures that no memory has taken for longer than that should last. */
export function checkLateCaptures(environment: Environment, isRunning: boolean): readonly Check[] {
  try {
    const late = lateCaptures(dataFolder(environment), { now: Date.now(), isRunning });
    return late.map((one) => ({ level: 'warning', subject: 'Captures', ...one }));
  } catch (error) {
    // That the folder is not known is told where the store is looked at.
    if (error instanceof FileError) return [];
    throw error;
  }
}
