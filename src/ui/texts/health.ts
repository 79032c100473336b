import { count, whole } from '../format.ts';

export const HEALTH = {
  fine: (checks: number) => `All ${count(checks, 'check')} are fine.`,
  look: (bad: number, rest: number) =>
    `${bad === 1 ? 'One check needs' : `${whole(bad)} checks need`} attention. The other ${count(rest, 'check')} ${rest === 1 ? 'is' : 'are'} fine.`,
  looked: (time: string) =>
    `Checked at ${time}. Checking again costs nothing and sends no model request.`,
  looking: 'Checking … this takes a few seconds.',
  checks: 'Checks',
  again: 'Check again',
  levels: { ok: 'ok', warning: 'warning', problem: 'problem' },
  moreOk: (checks: number) =>
    `Show ${count(checks, 'check')} more that ${checks === 1 ? 'is' : 'are'} ok`,
  store: 'Store',
  memories: 'Memories',
  projects: 'Projects',
  passages: 'Passages in the index',
  size: 'Size on disk',
  engine: 'Engine',
  service: 'Memory service',
  inUse: 'In use',
  local: 'none, memory is on this machine',
  outbox: 'Outbox',
  empty: 'empty',
  waiting: (records: number) => `${count(records, 'record')} waiting`,
  svc: 'svc',
  node: 'Node',
  live: 'Live check',
  liveText:
    'Sends two small requests to each provider and shows what its cache did. svc does not remember them.',
  liveButton: 'Run: costs about 10,000 input tokens',
  page: 'This page',
  pageText:
    'It closes by itself after an hour without use, and after 12 hours in any case. The cookie opens only this page, never a model.',
  close: 'Close it now',
};
