import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** Of the server and all that it has started, also of those that have ended. */
export function serverCpuMs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const ticks = [String(pid), ...children].map((one) => {
    try {
      const fields = readFileSync(`/proc/${one}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      // Its own, and for the server those of its children that have ended.
      return [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field] ?? 0), 0);
    } catch {
      return 0;
    }
  });
  const perSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return (ticks.reduce((sum, one) => sum + one, 0) * 1000) / perSecond;
}

/** To the microsecond, of a server that starts no other process. */
export function threadsCpuMs(pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}
