import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { runAtRest } from './client/use-load.ts';
import { hrefOf, route, type ViewName } from './client/router.ts';
import { about, line, page } from './client/session.ts';
import { TEXTS } from './texts/texts.ts';
import { Command } from './parts/command.tsx';
import { Busy } from './parts/states.tsx';
import { RequestsView } from './views/requests.tsx';
import { RequestView } from './views/request.tsx';
import { askMemoryAhead, MemoryView } from './views/memory.tsx';
import { HealthView } from './views/health.tsx';
import { askSavingsAhead, SavingsView } from './views/savings.tsx';
import { NowView } from './views/now.tsx';

/** The frame around every view, and the states without a view. */

export function App() {
  const { name } = page.value;
  if (name === 'open') return <Frame view={route.value.view} />;
  return <Shell>{page.value.name === 'closed' ? <Closed why={page.value.why} /> : <Busy />}</Shell>;
}

const TABS: readonly { readonly view: ViewName; readonly also: readonly ViewName[] }[] = [
  { view: 'now', also: [] },
  { view: 'requests', also: ['request'] },
  { view: 'memory', also: [] },
  { view: 'savings', also: [] },
  { view: 'health', also: [] },
];

function Frame({ view }: { readonly view: ViewName }) {
  useTitle(TEXTS.views[view]);
  useEffect(() => void runAtRest([askMemoryAhead, askSavingsAhead]), []);
  return (
    <Shell nav={<Tabs view={view} />}>
      {line.value === 'lost' && (
        <p class="notice warn" role="status">
          <span class="dot warn" />
          <span>{TEXTS.frame.lost}</span>
        </p>
      )}
      <View view={view} />
    </Shell>
  );
}

function View({ view }: { readonly view: ViewName }) {
  switch (view) {
    case 'request':
      return <RequestView />;
    case 'requests':
      return <RequestsView />;
    case 'memory':
      return <MemoryView />;
    case 'savings':
      return <SavingsView />;
    case 'health':
      return <HealthView />;
    case 'now':
      return <NowView />;
  }
}

function Tabs({ view }: { readonly view: ViewName }) {
  return (
    <nav class="views" aria-label={TEXTS.frame.views}>
      {TABS.map((tab) => (
        <a
          key={tab.view}
          href={hrefOf(tab.view)}
          {...(tab.view === view || tab.also.includes(view)
            ? { 'aria-current': 'page' as const }
            : {})}
        >
          {TEXTS.views[tab.view]}
        </a>
      ))}
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
        {TEXTS.frame.skip}
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
      <footer class="foot">{TEXTS.frame.foot}</footer>
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
      <span>{TEXTS.frame.proxy(location.host)}</span>
      {about.value !== undefined && (
        <span class="more">{TEXTS.frame.version(about.value.version)}</span>
      )}
    </p>
  );
}

function Closed({ why }: { readonly why: keyof typeof TEXTS.closed }) {
  useTitle(TEXTS.frame.closed);
  const { title, text } = TEXTS.closed[why];
  return (
    <section aria-labelledby="closed">
      <h1 id="closed">{title}</h1>
      <p class="lead">{text}</p>
      <p class="lead">{TEXTS.frame.newLink}</p>
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
