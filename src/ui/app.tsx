import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { runAtRest } from './client/use-load.ts';
import { hrefOf, route, type ViewName } from './client/router.ts';
import { about, line, page } from './client/session.ts';
import { CLOSED, FRAME, VIEWS } from './texts/frame.ts';
import { Command } from './parts/command.tsx';
import { Busy } from './parts/states.tsx';
import { RequestsView } from './views/requests.tsx';
import { RequestView } from './views/request.tsx';
import { askMemoryAhead, MemoryView } from './views/memory.tsx';
import { HealthView } from './views/health.tsx';
import { askSavingsAhead, SavingsView } from './views/savings.tsx';
import { NowView } from './views/now.tsx';

/** Draws the frame around every view, and what the page shows without a session. */

export function App() {
  const { name } = page.value;
  if (name === 'open') return <Frame view={route.value.view} />;
  return <Shell>{page.value.name === 'closed' ? <Closed why={page.value.why} /> : <Busy />}</Shell>;
}

const PAGES: Readonly<Record<ViewName, ComponentType>> = {
  now: NowView,
  requests: RequestsView,
  request: RequestView,
  memory: MemoryView,
  savings: SavingsView,
  health: HealthView,
};
/** The views with a tab. The view of one request belongs to the tab `requests`. */
const TABS = ['now', 'requests', 'memory', 'savings', 'health'] as const;

function Frame({ view }: { readonly view: ViewName }) {
  useTitle(VIEWS[view]);
  const Page = PAGES[view];
  useEffect(() => void runAtRest([askMemoryAhead, askSavingsAhead]), []);
  return (
    <Shell nav={<Tabs view={view} />}>
      {line.value === 'lost' && (
        <p class="notice warn" role="status">
          <span class="dot warn" />
          <span>{FRAME.lost}</span>
        </p>
      )}
      <Page />
    </Shell>
  );
}

function Tabs({ view }: { readonly view: ViewName }) {
  return (
    <nav class="views" aria-label={FRAME.views}>
      {TABS.map((tab) => {
        const isOpen = tab === view || (tab === 'requests' && view === 'request');
        return (
          <a key={tab} href={hrefOf(tab)} aria-current={isOpen ? 'page' : undefined}>
            {VIEWS[tab]}
          </a>
        );
      })}
    </nav>
  );
}

function Shell(props: { readonly nav?: ComponentChildren; readonly children: ComponentChildren }) {
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        {FRAME.skip}
      </a>
      <header class="bar">
        <a class="brand" href={hrefOf('now')}>
          <Mark />
          svc
        </a>
        {props.nav}
        <ProxyLine />
      </header>
      <main id="main" tabIndex={-1}>
        {props.children}
      </main>
      <footer class="foot">{FRAME.foot}</footer>
    </>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <rect class="f-ink" x="1" y="2" width="11" height="2.5" rx="1" />
      <rect class="f-added" x="1" y="6.75" width="14" height="2.5" rx="1" />
      <rect class="f-ink" x="1" y="11.5" width="8" height="2.5" rx="1" />
    </svg>
  );
}

function ProxyLine() {
  const isLive = page.value.name === 'open' && line.value === 'live';
  return (
    <p class="proxy">
      <span class={isLive ? 'dot ok' : 'dot'} />
      <span>{FRAME.proxy(location.host)}</span>
      {about.value !== undefined && <span class="more">{FRAME.version(about.value.version)}</span>}
    </p>
  );
}

function Closed({ why }: { readonly why: keyof typeof CLOSED }) {
  useTitle(FRAME.closed);
  const { title, text } = CLOSED[why];
  return (
    <section aria-labelledby="closed">
      <h1 id="closed">{title}</h1>
      <p class="lead">{text}</p>
      <p class="lead">{FRAME.newLink}</p>
      <p class="mend">
        <Command text="svc ui" />
      </p>
    </section>
  );
}

function useTitle(name: string): void {
  useEffect(() => {
    document.title = `${name} · svc`;
  }, [name]);
}
