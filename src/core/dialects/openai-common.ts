import type { PictureSize } from '../bytes/picture-size.ts';
import { CACHE_DEFAULT_MS } from '../conversation/cache-marks.ts';
import type { CachePrices } from './descriptor.ts';

/** The parts that OpenAI's two dialects share. */

// Prices of OpenAI's cache. It is read for the longest identical prefix; newer models also charge for writing.
export const OPENAI_CACHE: CachePrices = {
  read: 0.1,
  write: 1.25,
  writeHour: 1.25,
  isKnown: true,
  tokenRatio: 1.114,
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const OPENAI_MODEL = /(?:^|[/:])gpt-(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)/;

/**
 * Returns how long OpenAI caches a prompt, by its guide: from GPT-5.6 on at least 30 minutes. GPT-5.5 keeps it for
 * 24 hours; so do GPT-4.1 and the other GPT-5 by default, unless the organisation has zero data retention.
 */
export function openAiCacheMs(model: string): number {
  const [, major = '0', minor = '0'] = OPENAI_MODEL.exec(model.toLowerCase()) ?? [];
  const version = Number(major) * 100 + Number(minor);
  if (version >= 506) return 30 * MINUTE_MS;
  if (version >= 500 || version === 401) return 24 * HOUR_MS;
  return CACHE_DEFAULT_MS;
}

// OpenAI's guide: scaled into a square of 2,048 pixels, then to 768 at the shorter edge; 85 tokens, plus 170 per tile
// of 512 pixels.
const SQUARE = 2_048;
const SHORT_EDGE = 768;
const TILE = 512;
const BASE_TOKENS = 85;
const TILE_TOKENS = 170;
/** Tiles of a picture of unknown size: as for 1,024 by 2,048 pixels, the most that scaling leaves. */
const TILES_UNKNOWN = 6;

export function openAiPictureTokens(size: PictureSize | undefined, detail: string): number {
  if (detail === 'low') return BASE_TOKENS;
  if (size === undefined) return BASE_TOKENS + TILES_UNKNOWN * TILE_TOKENS;
  const fit = Math.min(1, SQUARE / Math.max(size.width, size.height));
  const short = Math.min(1, SHORT_EDGE / (Math.min(size.width, size.height) * fit));
  const tiles = (pixels: number): number => Math.max(1, Math.ceil((pixels * fit * short) / TILE));
  return BASE_TOKENS + TILE_TOKENS * tiles(size.width) * tiles(size.height);
}
