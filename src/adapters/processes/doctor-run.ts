import { execFile } from 'node:child_process';
import { asRecord, parseJson } from '../../core/bytes/json-fields.ts';
import { members, oneOf, parseShape, text } from '../../core/memory-api/shape.ts';
import type { HealthCheck } from '../../ports/ui-api.ts';

/**
 * What runDoctor() needs to run `svc doctor` as a separate process, which uses neither the proxy's memory nor its time.
 */
interface DoctorRun {
  readonly script: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly deadlineMs: number;
}

const OUTPUT_BYTES_MAX = 1 << 20;

/** Returns the checks; undefined if the process did not print them before the deadline. */
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
      // Ignore the error: the exit code is 1 if a check found a problem.
      (_error, stdout) => resolve(checksIn(stdout)),
    );
  });
}

function checksIn(output: string): readonly HealthCheck[] | undefined {
  const { checks } = asRecord(parseJson(output));
  if (!Array.isArray(checks)) return undefined;
  return checks.flatMap((check) => parseShape(healthCheck, check).value ?? []);
}

const healthCheck = members(
  { level: oneOf('ok', 'warning', 'problem'), subject: text(), found: text() },
  { fix: text() },
);
