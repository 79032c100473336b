import { computed, signal } from '@preact/signals';
import { pathOf, type Words } from './api.ts';

/** The open view and its filters: the fragment of the address, such as `#/memory?space=tidewater&ref=m_4k2q`. */

const VIEWS = ['now', 'request', 'memory', 'savings', 'requests', 'health'] as const;
export type ViewName = (typeof VIEWS)[number];

export interface Route {
  readonly view: ViewName;
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  // The fragment of a pasted link of `svc ui` is not a view. Then the open view stays.
  if (isView(location.hash)) hash.value = location.hash;
});

function isView(fragment: string): boolean {
  return fragment === '' || fragment.startsWith('#/');
}

/** Replaces the fragment of a link, which has a secret, by that of the open view. */
export function showView(): void {
  const fragment = isView(hash.value) ? hash.value : '';
  history.replaceState(null, '', location.pathname + fragment);
}

export const route = computed<Route>(() => {
  const [, name = '', words = ''] = /^#\/(\w*)\??(.*)$/.exec(hash.value) ?? [];
  const view = VIEWS.find((known) => known === name) ?? 'now';
  return { view, query: new URLSearchParams(words) };
});

/** Returns a day in the address, such as 2026-11-20; undefined if the value is missing or has another form. */
export function dayIn(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name) ?? '';
  return /^\d{4}-\d\d-\d\d$/.test(value) ? value : undefined;
}

export function hrefOf(view: ViewName, words: Words = {}): string {
  return pathOf(`#/${view}`, words);
}

/** Returns the address of the open view with some values changed. */
export function hrefWith(changes: Words): string {
  const { view, query } = route.value;
  return hrefOf(view, { ...Object.fromEntries(query), ...changes });
}
