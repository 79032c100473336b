import { execFile } from 'node:child_process';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { HealthCheck } from '../../ports/ui-api.ts';

/** Runs `svc doctor` as a separate process, so that it uses neither the proxy's memory nor its time. */
interface DoctorRun {
  /** The script of this very program. */
  readonly script: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly deadlineMs: number;
}

const OUTPUT_BYTES_MAX = 1 << 20;
const LEVELS = ['ok', 'warning', 'problem'] as const;

/** Undefined where it did not report in time. */
export function runDoctor(run: DoctorRun): Promise<readonly HealthCheck[] | undefined> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [run.script, 'doctor', '--json', ...run.args],
      {
        env: { ...run.environment },
        timeout: run.deadlineMs,
        maxBuffer: OUTPUT_BYTES_MAX,
        windowsHide: true,
      },
      // The exit code is 1 if a check found something.
      (_error, stdout) => resolve(checksIn(stdout)),
    );
  });
}

function checksIn(text: string): readonly HealthCheck[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const checks: unknown = isRecord(value) ? value['checks'] : undefined;
    return Array.isArray(checks) ? checks.filter(isCheck) : undefined;
  } catch {
    return undefined;
  }
}

function isCheck(value: unknown): value is HealthCheck {
  return (
    isRecord(value) &&
    LEVELS.some((level) => level === value['level']) &&
    typeof value['subject'] === 'string' &&
    typeof value['found'] === 'string'
  );
}
