import { folderSpace } from '../../src/core/request/space.ts';
import type { Project, Projects } from '../../src/ports/projects.ts';

/** Every folder is its own project, as it is without git. */
export const FOLDER_PROJECTS: Projects = {
  known: projectOf,
  find: (folder) => Promise.resolve(projectOf(folder)),
};

function projectOf(folder: string): Project {
  return { space: folderSpace(folder), olderSpaces: [] };
}
