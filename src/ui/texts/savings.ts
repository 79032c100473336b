import { count, percent, whole } from '../format.ts';

export const SAVINGS = {
  days: 'Days',
  scopes: [
    [1, 'Today'],
    [7, '7 days'],
    [14, '14 days'],
    [30, '30 days'],
    [90, '90 days'],
  ] as readonly (readonly [number, string])[],
  everything: 'All projects, all clients, all models',
  when: (days: number) => (days === 1 ? 'Today' : `In the last ${days} days`),
  less: (when: string, share: number) =>
    `${when} your input cost ${percent(share)} less than direct.`,
  more: (when: string, share: number) =>
    `${when} your input cost ${percent(share)} more than direct.`,
  same: (when: string) => `${when} your input cost the same as direct.`,
  none: (when: string) => `${when} no request has a known cost.`,
  noneText: 'A price needs the provider’s token counts. Requests that svc only relays have none.',
  lead: (paid: string, direct: string, requests: number) =>
    `It cost as much as ${paid} input tokens at full price, instead of about ${direct}, over ${count(requests, 'request')}.`,
  money: (paid: string, direct: string) =>
    `At the list prices of your models, about ${paid} instead of ${direct}.`,
  output: 'Output costs the same both ways.',
  byDay: 'By day',
  keyPaid: 'with svc',
  keyKept: 'saved: the whole bar is direct',
  keyOver: 'more than direct',
  chart: 'Chart by day, which may be wider than the screen',
  bar: (day: Readonly<Record<'share' | 'date' | 'paid' | 'direct' | 'change', string>>) =>
    `${day.share}, ${day.date}: ${day.paid} with svc, ${day.direct} direct, ${day.change}`,
  kept: (value: string) => `${value} saved`,
  dearer: (value: string) => `${value} more`,
  table: 'The same numbers in a table',
  heads: {
    day: 'Day',
    requests: 'Requests',
    paid: 'With svc',
    direct: 'Direct',
    difference: 'Difference',
  },
  together: 'Total',
  by: { space: 'By project', model: 'By model', client: 'By client' },
  rankedHeads: { name: 'Name', share: 'Share', paid: 'With svc', difference: 'Difference' },
  noName: '(none)',
  counted: 'What the price includes',
  countedHeads: { what: 'Estimates of svc, and the provider’s counts', tokens: 'Tokens' },
  leftOut: 'Left out, counted for every request',
  added: 'Memories added',
  cacheRead: 'Read from the provider’s cache',
  cacheWritten: 'Written to the provider’s cache',
  fresh: 'New, at full price',
  again: (outputs: number) =>
    `Left-out text that a model read again: ${count(outputs, 'output')}. Price of those requests, direct`,
  used: (prompts: number, usedOnes: number) =>
    `${count(prompts, 'prompt')} got memories. As far as svc can see, the model used them in ${whole(usedOnes)}.`,
  card: 'A card to share',
  cardSays: 'says what it measures',
  cardSame: 'Even',
  cardText: (change: number) =>
    change === 0
      ? 'input cost the same as without svc'
      : `${change < 0 ? 'less' : 'more'} for input than without svc`,
  cardScope: (days: number, date: string, requests: number) =>
    `${count(days, 'day')} to ${date}, ${count(requests, 'request')}, by the providers’ own counts.`,
  cardModel: 'Direct is an estimate. The price includes rereads and cache writes.',
  cardLabel: (share: string, days: number, requests: number) =>
    `${share} for input, ${count(days, 'day')}, ${count(requests, 'request')}`,
  saveSvg: 'Save as SVG',
  savePng: 'Save as PNG',
  how: 'How to read this',
  howText: [
    'A price is in input tokens at full price. What comes from the provider’s cache counts a tenth, or less with some models. What is written to it counts 1.25, or 2 for an hour.',
    'svc cannot measure the direct price. It estimates it, with the same cache and no shortening.',
    'Every number opens the requests behind it.',
  ],
};
