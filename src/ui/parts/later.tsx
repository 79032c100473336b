import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** Draws its children after the browser has painted the rest of the view. Use it for parts below the visible ones. */
export function Later({ children }: { readonly children: ComponentChildren }) {
  const [isDue, setDue] = useState(false);
  useEffect(() => setDue(true), []);
  return isDue ? <>{children}</> : null;
}

/** Rows that are drawn first, about as many as fit on a screen, and rows that each further step adds. */
const ROWS_FIRST = 10;
const ROWS_STEP = 24;

/** Returns the first rows of a list. Draws again after each painting with more rows, until all are drawn. */
export function useRows<T>(all: readonly T[]): readonly T[] {
  const [shown, setShown] = useState(ROWS_FIRST);
  const isWhole = all.length <= shown;
  useEffect(() => {
    if (!isWhole) setShown(shown + ROWS_STEP);
  }, [isWhole, shown]);
  return isWhole ? all : all.slice(0, shown);
}
