import { useRef } from 'preact/hooks';

export interface CardTexts {
  readonly figure: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly label: string;
  readonly saveSvg: string;
  readonly savePng: string;
}

interface CardProps {
  readonly texts: CardTexts;
  /** The paid price as a share of the direct price; more than 1 if svc cost more. */
  readonly paidShare: number;
}

const WIDTH = 480;
const HEIGHT = 220;
const BAR = 416;
const INK = '#1a1c1f';
const QUIET = '#5b5f66';
const PNG_SCALE = 2;

/** Draws a card that the user can save and share. Its colours are fixed, so that it looks the same in both themes. */
export function ShareCard({ texts, paidShare }: CardProps) {
  const drawing = useRef<SVGSVGElement>(null);
  const paid = Math.min(1, paidShare) * BAR;
  return (
    <>
      <div class="card">
        <svg
          ref={drawing}
          xmlns="http://www.w3.org/2000/svg"
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          width={WIDTH}
          height={HEIGHT}
          font-family="system-ui, sans-serif"
          role="img"
          aria-label={texts.label}
        >
          <rect width={WIDTH} height={HEIGHT} fill="#ffffff" />
          <text x="32" y="92" font-size="60" font-weight="650" fill={INK}>
            {texts.figure}
          </text>
          <text x="32" y="122" font-size="17" fill={INK}>
            {texts.text}
          </text>
          <rect x="32" y="146" width={paid} height="10" rx="2" fill="#666b74" />
          <rect
            x={32 + paid}
            y="146"
            width={BAR - paid}
            height="10"
            rx="2"
            fill={paidShare > 1 ? '#855000' : '#2b9559'}
          />
          {texts.lines.map((line, at) => (
            <text key={line} x="32" y={180 + at * 16} font-size="11" fill={QUIET}>
              {line}
            </text>
          ))}
          <text x="448" y="52" font-size="15" font-weight="650" text-anchor="end" fill={INK}>
            svc
          </text>
        </svg>
      </div>
      <div class="buttons">
        <button type="button" onClick={() => saveSvg(drawing.current)}>
          {texts.saveSvg}
        </button>
        <button type="button" onClick={() => void savePng(drawing.current)}>
          {texts.savePng}
        </button>
      </div>
    </>
  );
}

function saveSvg(drawing: SVGSVGElement | null): void {
  if (drawing === null) return;
  const text = new XMLSerializer().serializeToString(drawing);
  download(new Blob([text], { type: 'image/svg+xml' }), 'svc-savings.svg');
}

async function savePng(drawing: SVGSVGElement | null): Promise<void> {
  if (drawing === null) return;
  const image = new Image();
  const text = new XMLSerializer().serializeToString(drawing);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = WIDTH * PNG_SCALE;
  canvas.height = HEIGHT * PNG_SCALE;
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    if (blob !== null) download(blob, 'svc-savings.png');
  }, 'image/png');
}

function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
