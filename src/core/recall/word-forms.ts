/**
 * Lists irregular forms of English words ("bought" for "buy", "children" for "child"), and words with two spellings
 * in texts about code ("colour", "repo", "postgres"). A comma ends each group. The index stores the first word of a
 * group instead of the others. Forms that are more often another word are missing: "left", "rose", "led", "ground".
 */
const GROUPS = `
  beat beaten, become became, begin began begun, bend bent, bite bit bitten, blow blew blown, break broke broken,
  bring brought, build built, burn burnt, buy bought, catch caught, child children kid kids, choose chose chosen,
  come came, deal dealt, dig dug, draw drew drawn, dream dreamt, drink drank drunk, drive drove driven, eat ate eaten,
  fall fell fallen, feed fed, feel felt, fight fought, find found, flee fled, fly flew flown, forget forgot forgotten,
  forgive forgave forgiven, freeze froze frozen, get got gotten, give gave given, go went gone, grow grew grown,
  hang hung, hear heard, hide hid hidden, hold held, keep kept, know knew known, learn learnt, lend lent, lose lost,
  make made, man men, mean meant, meet met, mouse mice, overcome overcame, pay paid, person people, prove proven,
  ride rode ridden, ring rang rung, rise risen, run ran, say said, see saw seen, seek sought, sell sold, send sent,
  shake shook shaken, shoot shot, show shown, sing sang sung, sit sat, sleep slept, slide slid, speak spoke spoken,
  spend spent, stand stood, steal stole stolen, stick stuck, swear swore sworn, sweep swept, swim swam swum,
  swing swung, take took taken, teach taught, tear tore torn, tell told, think thought, throw threw thrown,
  tooth teeth, foot feet, wife wives, shelf shelves, half halves, analysis analyses, criterion criteria,
  index indices, matrix matrices, vertex vertices, understand understood, wake woke woken, wear wore worn, win won,
  woman women, write wrote written, analyze analyse, behavior behaviour, center centre, color colour,
  favorite favourite, gray grey, license licence, math maths mathematics, optimize optimise, organize organise,
  program programme, realize realise, recognize recognise, authentication auth, config configuration, database db,
  dependency dep deps, dev development, directory dir dirs, documentation docs, env environment, js javascript,
  k8s kubernetes, postgres postgresql, prod production, py python, repo repos repository repositories, ts typescript,
  admin administrator administrators, app apps application applications, argument arg args, async asynchronous,
  command cmd cmds, error err errs, function func funcs fn, image img imgs, info information, library lib libs,
  message msg msgs, package pkg pkgs, parameter param params, performance perf, request req reqs, response resp,
  specification spec specs, variable var vars
`;

/** For each form, the word that it is a form of. */
export const WORD_FORMS: ReadonlyMap<string, string> = new Map(
  GROUPS.trim()
    .split(/,\s+/)
    .flatMap((group) => {
      const [word = '', ...forms] = group.split(' ');
      return forms.map((form) => [form, word] as const);
    }),
);
