import { count, percent, whole } from '../format.ts';

/** The words of Savings, and of the card. */

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
  none: (when: string) => `${when} no request told what it cost.`,
  noneText: 'A price needs the provider’s own counts. Requests that svc only relays have none.',
  lead: (paid: string, direct: string, requests: number) =>
    `That of ${paid} input tokens at full price instead of about ${direct}, over ${count(requests, 'request')}.`,
  money: (paid: string, direct: string) =>
    `At the list prices of your models, about ${paid} instead of ${direct}.`,
  unpriced: (requests: number) =>
    `${count(requests, 'request')} to models without a list price, or by a login, are not in the dollars.`,
  output: 'Output costs the same both ways.',
  byDay: 'By day',
  keyPaid: 'with svc',
  keyKept: 'kept: direct is the whole bar',
  keyOver: 'dearer than direct',
  chart: 'Chart by day, which may be wider than the screen',
  bar: (day: Readonly<Record<'share' | 'date' | 'paid' | 'direct' | 'change', string>>) =>
    `${day.share}, ${day.date}: ${day.paid} with svc, ${day.direct} direct, ${day.change}`,
  kept: (value: string) => `${value} kept`,
  dearer: (value: string) => `${value} dearer`,
  table: 'The same numbers in a table',
  heads: {
    day: 'Day',
    requests: 'Requests',
    paid: 'With svc',
    direct: 'Direct',
    difference: 'Difference',
  },
  together: 'Together',
  by: { space: 'By project', model: 'By model', client: 'By client' },
  rankedHeads: { name: 'Name', share: 'Share', paid: 'With svc', difference: 'Difference' },
  noName: '(none)',
  counted: 'What is counted in',
  countedHeads: { what: 'Estimates of svc, and the provider’s counts', tokens: 'Tokens' },
  leftOut: 'Left out of requests, each time it was not sent',
  added: 'Memories added',
  cacheRead: 'Read from the provider’s cache',
  cacheWritten: 'Written to the provider’s cache',
  fresh: 'New, at full price',
  again: (outputs: number, files: number) =>
    `Left-out text that a model read again: ${count(outputs, 'output')}, ${count(files, 'file')}. Price of those requests, direct`,
  used: (prompts: number, usedOnes: number) =>
    `Of ${count(prompts, 'prompt')} that got memories, the model used those of ${whole(usedOnes)}, as far as svc can see.`,
  card: 'A card to share',
  cardSays: 'says what it measures',
  cardSame: 'Even',
  cardText: (change: number) =>
    change === 0
      ? 'input cost the same as without svc'
      : `${change < 0 ? 'less' : 'more'} for input than without svc`,
  cardScope: (days: number, date: string, requests: number) =>
    `${count(days, 'day')} to ${date}, ${count(requests, 'request')}, by the providers’ own counts.`,
  cardModel: 'Direct is a model. Rereads and cache writes are counted in.',
  cardLabel: (share: string, days: number, requests: number) =>
    `${share} for input, ${count(days, 'day')}, ${count(requests, 'request')}`,
  saveSvg: 'Save as SVG',
  savePng: 'Save as PNG',
  how: 'How to read this',
  howText: [
    'A price is in input tokens at full price. What comes from the provider’s cache counts a tenth. What is written to it counts 1.25, or 2 for an hour.',
    'Direct cannot be seen, so it is a model: the cache works for it as it did here, and no batch made it write the prompt anew.',
    'Every number opens the requests behind it.',
  ],
};
