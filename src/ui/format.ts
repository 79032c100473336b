/** Numbers and times as the page writes them. Every number stands beside its unit. */

/** 950, 1.2k, 85k, 1.3M */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  const [scaled, unit] = size < 999_500 ? [value / 1000, 'k'] : [value / 1_000_000, 'M'];
  return `${Math.abs(scaled) < 9.95 ? scaled.toFixed(1) : Math.round(scaled)}${unit}`;
}

/** 71,240 */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** `−24 %`, `+3 %`, `0 %`; a dash where nothing is known. */
export function signedPercent(share: number | undefined): string {
  if (share === undefined || !Number.isFinite(share)) return '–';
  const rounded = Math.round(share * 100);
  const sign = rounded > 0 ? '+' : '';
  return `${rounded < 0 ? '−' : sign}${Math.abs(rounded)} %`;
}

export function percent(share: number | undefined): string {
  return share === undefined || !Number.isFinite(share) ? '–' : `${Math.round(share * 100)} %`;
}

export function milliseconds(value: number): string {
  return value < 10_000 ? `${withTenth(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}

export function withTenth(value: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}

/** How long ago, or how long it takes: 6 s, 24 min, 3 h. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const SECONDS = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});

export function clock(at: number): string {
  return CLOCK.format(at);
}

export function clockSeconds(at: number): string {
  return SECONDS.format(at);
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${whole(value)} ${value === 1 ? one : many}`;
}
