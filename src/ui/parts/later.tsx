import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** Draws parts of a view later, when its first part is on the screen: effects run after the browser has painted. */

/** Draws its children after the rest of the view, because they are below the visible part. */
export function Later({ children }: { readonly children: ComponentChildren }) {
  const [isDue, setDue] = useState(false);
  useEffect(() => setDue(true), []);
  return isDue ? <>{children}</> : null;
}

/** Rows that are drawn first: about as many as fit on a screen. */
const ROWS_FIRST = 10;
const ROWS_STEP = 24;

/** Returns the first rows of a list, and at later calls more and more, until all are drawn. */
export function useRows<T>(all: readonly T[]): readonly T[] {
  const [shown, setShown] = useState(ROWS_FIRST);
  const isWhole = all.length <= shown;
  useEffect(() => {
    if (!isWhole) setShown(shown + ROWS_STEP);
  }, [isWhole, shown]);
  return isWhole ? all : all.slice(0, shown);
}
