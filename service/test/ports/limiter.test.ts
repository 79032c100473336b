import { ProcessLimiter } from '../../src/adapters/limiter/process-limiter.ts';
import { limiterSuite } from './limiter-suite.ts';

limiterSuite('in this process', (clock) => new ProcessLimiter(clock));
