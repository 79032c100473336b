/** The mark of svc: three lines, and the middle one was added. */
export function Mark() {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <rect class="f-ink" x="1" y="2" width="11" height="2.5" rx="1" />
      <rect class="f-added" x="1" y="6.75" width="14" height="2.5" rx="1" />
      <rect class="f-ink" x="1" y="11.5" width="8" height="2.5" rx="1" />
    </svg>
  );
}
