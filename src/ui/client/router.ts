import { computed, signal } from '@preact/signals';
import { pathOf, type Words } from './api.ts';

/** Keeps the view and its filters in the address after `#/`: `#/memory?space=tidewater&ref=m_4k2q`. */

const VIEWS = ['now', 'request', 'memory', 'savings', 'requests', 'health'] as const;
export type ViewName = (typeof VIEWS)[number];

export interface Route {
  readonly view: ViewName;
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  // The fragment of a link is no view, so the open view stays.
  if (isView(location.hash)) hash.value = location.hash;
});

function isView(fragment: string): boolean {
  return fragment === '' || fragment.startsWith('#/');
}

/** Replaces a link's address by that of the open view. */
export function showView(): void {
  const fragment = isView(hash.value) ? hash.value : '';
  history.replaceState(null, '', location.pathname + fragment);
}

export const route = computed<Route>(() => {
  const [, name = '', words = ''] = /^#\/(\w*)\??(.*)$/.exec(hash.value) ?? [];
  const view = VIEWS.find((known) => known === name) ?? 'now';
  return { view, query: new URLSearchParams(words) };
});

/** Returns a day in the address, such as 2026-11-20; undefined for anything else. */
export function dayIn(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name) ?? '';
  return /^\d{4}-\d\d-\d\d$/.test(value) ? value : undefined;
}

export function hrefOf(view: ViewName, words: Words = {}): string {
  return pathOf(`#/${view}`, words);
}

export function goTo(view: ViewName, words: Words = {}): void {
  location.hash = hrefOf(view, words);
}

/** Returns the address of the open view with some of its words changed. */
export function hrefWith(changes: Words): string {
  const { view, query } = route.value;
  return hrefOf(view, { ...Object.fromEntries(query), ...changes });
}
