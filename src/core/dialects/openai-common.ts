import type { PictureSize } from '../bytes/picture-size.ts';
import { CACHE_DEFAULT_MS } from '../conversation/cache-marks.ts';
import type { CachePrices } from './descriptor.ts';

/** What both dialects of OpenAI have in common. */

// Prices of OpenAI's cache. Only newer models charge for writing. `tokenRatio`, OpenAI's count of tokens divided by
// svc's estimate, was measured on Codex's usage (bench/README.md).
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
 * Returns how long OpenAI caches a prompt by default, in milliseconds, as its guide says: at least 30 minutes from
 * GPT-5.6 on; 24 hours for GPT-4.1 and older GPT-5 models, unless the organisation has zero data retention. Any other
 * model has CACHE_DEFAULT_MS.
 */
export function openAiCacheMs(model: string): number {
  const [, major = '0', minor = '0'] = OPENAI_MODEL.exec(model.toLowerCase()) ?? [];
  const version = Number(major) * 100 + Number(minor);
  if (version >= 506) return 30 * MINUTE_MS;
  if (version >= 500 || version === 401) return 24 * HOUR_MS;
  return CACHE_DEFAULT_MS;
}

// OpenAI's vision guide: a picture is scaled down to fit into a square of 2,048 pixels, and then until its shorter edge
// has 768. It has 85 tokens, and 170 for each tile of 512 by 512 pixels.
const SQUARE = 2_048;
const SHORT_EDGE = 768;
const TILE = 512;
const BASE_TOKENS = 85;
const TILE_TOKENS = 170;
/** Tiles of a picture of unknown size: as many as a picture of 768 by 1,536 pixels has. */
const TILES_UNKNOWN = 6;

export function openAiPictureTokens(size: PictureSize | undefined, detail: string): number {
  if (detail === 'low') return BASE_TOKENS;
  if (size === undefined) return BASE_TOKENS + TILES_UNKNOWN * TILE_TOKENS;
  const fit = Math.min(1, SQUARE / Math.max(size.width, size.height));
  const short = Math.min(1, SHORT_EDGE / (Math.min(size.width, size.height) * fit));
  const tiles = (pixels: number): number => Math.max(1, Math.ceil((pixels * fit * short) / TILE));
  return BASE_TOKENS + TILE_TOKENS * tiles(size.width) * tiles(size.height);
}
