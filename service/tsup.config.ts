import { defineConfig } from 'tsup';
import { buildDigest, commands, moveTo, standalone } from '../tsup.config.ts';

const define = {
  SVC_BUILD: JSON.stringify(buildDigest(['src', 'service/src'], 'service/package.json')),
};

export default defineConfig([
  moveTo('', { ...commands, define, entry: { main: 'src/cli/main.ts' } }, 'service'),
  moveTo(
    'quick',
    {
      ...standalone,
      define,
      entry: {
        'service-store-worker': 'src/adapters/service-store/worker.ts',
        'zstd-worker': '../src/adapters/encoding/zstd-worker.ts',
      },
    },
    'service',
  ),
]);
