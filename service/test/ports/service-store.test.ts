import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';
import { serviceStoreSuite } from './service-store-suite.ts';

const report = (): void => undefined;

serviceStoreSuite('a SQLite file, as the service has it', () =>
  openServiceStore({ folder: tempFolder(), serves: true, creates: true, report }),
);

serviceStoreSuite('a SQLite file, as the command line has it', () =>
  openServiceStore({ folder: tempFolder(), creates: true, report }),
);
