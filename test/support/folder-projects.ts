import { folderSpace } from '../../src/core/request/space.ts';
import type { Place, Project, Projects } from '../../src/ports/projects.ts';

/** Every folder is its own project, as it is without git. */
export const FOLDER_PROJECTS: Projects = {
  known: projectOf,
  find: (place) => Promise.resolve(projectOf(place)),
};

function projectOf(place: Place): Project {
  return { space: typeof place === 'string' ? folderSpace(place) : place.space, olderSpaces: [] };
}
