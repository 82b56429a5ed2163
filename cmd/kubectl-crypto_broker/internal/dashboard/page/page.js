// SPDX-License-Identifier: Apache-2.0
//
// Shows the states of the fleet that the server sends. All text of the cluster becomes text nodes,
// never markup. Rows stay the same elements while their text changes, so that the keyboard's focus
// stays where it is.

const byId = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString('en');
const plural = (n, one) => `${count(n)} ${one}${n === 1 ? '' : 's'}`;

// make returns a new element in a parent.
function make(parent, name, className = '') {
  const element = document.createElement(name);
  element.className = className;
  parent.append(element);
  return element;
}

// say sets the text of an element, and leaves it alone if it is the same: screen readers read changes.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// badge shows a state by its words, its colour and its mark.
function badge(element, text, tone) {
  say(element, text);
  if (element.className !== tone) element.className = tone;
}

// table shows a list in the table of a section: begin makes the cells of a new row and returns the
// function that fills them. key tells which rows are the same.
function table(section, list, key, begin, empty) {
  const scroll = section.querySelector(':scope > .scroll');
  rows(scroll.querySelector('tbody'), list.rows, key, begin);
  scroll.hidden = list.rows.length === 0;
  if (empty) empty.hidden = list.rows.length > 0;
  say(section.querySelector(':scope > .more'), list.more > 0 ? `… and ${count(list.more)} more.` : '');
}

const fills = new WeakMap();

function rows(body, list, key, begin) {
  const old = new Map([...body.children].map((row) => [row.dataset.key, row]));
  let before = null;
  for (const item of list) {
    const id = key(item);
    let row = old.get(id);
    old.delete(id);
    if (!row) {
      row = document.createElement('tr');
      row.dataset.key = id;
      fills.set(row, begin(row));
      label(row, body);
    }
    fills.get(row)(item);
    const place = before ? before.nextElementSibling : body.firstElementChild;
    if (place !== row) body.insertBefore(row, place); // moving a row costs it the focus
    before = row;
  }
  for (const row of old.values()) row.remove();
}

// label tells each cell of a new row its role and its column, which the page shows on narrow screens.
function label(row, body) {
  const columns = body.parentElement.tHead.rows[0].cells;
  row.setAttribute('role', 'row');
  [...row.cells].forEach((cell, i) => {
    cell.setAttribute('role', i === 0 ? 'rowheader' : 'cell');
    cell.dataset.label = columns[i].textContent;
  });
}

// head makes the first cell of a row, its heading.
function head(row) {
  const cell = make(row, 'th');
  cell.scope = 'row';
  return cell;
}

const keyOf = (...parts) => JSON.stringify(parts);

function showCounts(fleet) {
  const c = fleet.counts;
  const shown = [
    ['Pods with a broker', c.pods, 'none'],
    ['Namespaces', c.namespaces, 'none'],
    ['Profiles', c.profiles, 'none'],
    ['Profiles with trouble', c.notServed, 'bad'],
    ['Changes on their way', c.propagating, 'busy'],
    ['Brokers missing', c.missing, 'bad'],
    ['Brokers outdated', c.outdated, 'warn'],
  ];
  const list = byId('counts');
  while (list.children.length < shown.length) {
    const group = make(list, 'div');
    make(group, 'dt');
    make(group, 'dd');
  }
  shown.forEach(([what, number, tone], i) => {
    const [term, value] = list.children[i].children;
    say(term, what);
    const unknown = !fleet.surveyed && (i < 2 || i > 4);
    badge(value, unknown ? '…' : count(number), unknown || number === 0 ? 'none' : tone);
  });
}

function showNotices(notices) {
  const list = byId('notices');
  list.hidden = notices.length === 0;
  while (list.children.length > notices.length) list.lastElementChild.remove();
  notices.forEach((notice, i) => say(list.children[i] || make(list, 'li'), notice));
}

const inNamespace = (item) => (item.namespace ? ` in namespace ${item.namespace}` : '');

function showProfiles(list) {
  table(byId('profiles'), list, (p) => keyOf(p.object, p.namespace), (row) => {
    const heading = head(row);
    const name = make(heading, 'span');
    const object = make(heading, 'span', 'note');
    const deprecated = make(heading, 'span', 'warn');
    const namespace = make(row, 'td');
    const state = make(row, 'td');
    const stateBadge = make(state, 'span');
    const why = make(state, 'span', 'note');
    const brokers = make(row, 'td');
    const bar = make(brokers, 'progress');
    const numbers = make(brokers, 'span', 'note');
    const where = make(row, 'td');
    const strength = make(row, 'td');
    const bits = make(strength, 'span');
    const weakest = make(strength, 'span', 'note');
    const fips = make(row, 'td');
    return (p) => {
      say(name, p.name);
      say(object, p.object);
      deprecated.hidden = !p.deprecated;
      say(deprecated, p.deprecated || '');
      say(namespace, p.namespace || 'cluster');
      badge(stateBadge, p.state, p.tone);
      say(why, p.why || '');
      bar.hidden = p.pods === 0;
      bar.max = Math.max(p.pods, 1);
      bar.value = p.updated;
      bar.setAttribute('aria-label', `Brokers that serve ${p.object}${inNamespace(p)}`);
      say(numbers, p.pods === 0 ? 'no pods' : `${count(p.updated)} of ${count(p.pods)}${p.unverified ? `, ${count(p.unverified)} could not be asked` : ''}`);
      const places = p.serving.rows.map((s) => `${s.where} (${count(s.pods)})`);
      if (p.serving.more) places.push(`${count(p.serving.more)} more`);
      say(where, places.join(', ') || '–');
      say(bits, p.strength === null ? '–' : `${p.strength} bits`);
      say(weakest, p.weakest || '');
      const verdict = { Approved: ['approved', 'good'], Partly: ['in part', 'warn'], NotApproved: ['not approved', 'warn'] }[p.fips] || ['–', 'none'];
      badge(fips, ...verdict);
    };
  }, byId('no-profiles'));
}

const words = {
  promote: ['Promote', 'End this step of the rollout?', 'The rollout goes on with its next step.'],
  'promote-full': ['Promote to all', 'Bring the new profile to all pods?', 'The rollout ends, and all pods get the new profile at once.'],
  abort: ['Abort', 'Take the rollout back?', 'All pods get the profile that they had before. The object keeps the change.'],
};

function showRollouts(list) {
  table(byId('rollouts'), list, (r) => keyOf(r.object, r.namespace), (row) => {
    const heading = head(row);
    const name = make(heading, 'span');
    const namespace = make(heading, 'span', 'note');
    const phase = make(row, 'td');
    const phaseBadge = make(phase, 'span');
    const message = make(phase, 'span', 'note');
    const step = make(row, 'td');
    const pods = make(row, 'td');
    const bar = make(pods, 'progress');
    const numbers = make(pods, 'span', 'note');
    const actions = make(row, 'td');
    const buttons = make(actions, 'div', 'buttons');
    const barred = make(actions, 'span', 'note');
    const made = new Map();
    let now;
    return (r) => {
      now = r;
      const id = `barred-${keyOf(r.object, r.namespace)}`;
      barred.id = id.replace(/[^a-z0-9-]/gi, '_');
      say(name, r.object);
      say(namespace, r.namespace || 'cluster');
      badge(phaseBadge, r.phase, r.tone);
      say(message, r.message || '');
      say(step, r.step ? `${r.step}${r.steps ? ` of ${r.steps}` : ''}, ${r.weight} %` : '–');
      const asked = r.newPods + r.oldPods;
      bar.hidden = asked === 0;
      bar.max = Math.max(asked, 1);
      bar.value = r.newPods;
      bar.setAttribute('aria-label', `Pods with the new profile of ${r.object}${inNamespace(r)}`);
      say(numbers, asked === 0 ? '–' : `${count(r.newPods)} of ${count(asked)}`);
      for (const choice of r.choices) {
        let button = made.get(choice.action);
        if (!button) {
          button = make(buttons, 'button');
          button.type = 'button';
          button.dataset.action = choice.action;
          button.addEventListener('click', () => confirm(choice.action, now));
          made.set(choice.action, button);
        }
        const [label] = words[choice.action];
        say(button, label);
        button.setAttribute('aria-label', `${label} ${r.object}${inNamespace(r)}`);
        button.disabled = Boolean(choice.barred);
        if (choice.barred) button.setAttribute('aria-describedby', barred.id);
        else button.removeAttribute('aria-describedby');
      }
      buttons.hidden = r.choices.length === 0;
      say(barred, [...new Set(r.choices.map((c) => c.barred).filter(Boolean))].join(' '));
    };
  }, byId('no-rollouts'));
}

// confirm asks before it asks the server. What it sends is what the page shows now.
function confirm(action, rollout) {
  const [label, question, consequence] = words[action];
  const { kind, namespace = '', name, attempt, step } = rollout;
  const dialog = byId('confirm');
  say(byId('question'), `${rollout.object}${inNamespace(rollout)}: ${question}`);
  say(byId('consequence'), consequence);
  say(byId('do-it'), label);
  byId('cancel').onclick = () => dialog.close();
  byId('do-it').onclick = () => {
    dialog.close();
    ask({ kind, namespace, name, action, attempt, step });
  };
  dialog.showModal();
}

async function ask(request) {
  const said = byId('said');
  say(said, 'Asking …');
  try {
    const reply = await fetch('rollouts', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(request) });
    say(said, (await reply.json()).says);
  } catch {
    say(said, 'The command did not answer: nothing is known to have been done.');
  }
}

function showProblems(fleet) {
  const empty = byId('no-problems');
  if (fleet.surveyed) say(empty, 'No broker needs attention.');
  table(byId('problems'), fleet.problems, (p) => keyOf(p.namespace, p.workload, p.problem), (row) => {
    const heading = head(row);
    const problem = make(heading, 'span');
    const why = make(heading, 'span', 'note');
    const namespace = make(row, 'td');
    const workload = make(row, 'td');
    const name = make(workload, 'span');
    const example = make(workload, 'span', 'note');
    const pods = make(row, 'td', 'number');
    const command = make(row, 'td');
    const code = make(command, 'code');
    const line = make(command, 'div', 'buttons');
    const copy = make(line, 'button');
    copy.type = 'button';
    say(copy, 'Copy');
    copy.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        say(byId('news'), 'The command was copied.');
        say(copy, 'Copied');
      } catch {
        say(byId('news'), 'The browser does not let the page copy.');
      }
    });
    return (p) => {
      badge(problem, p.problem, p.tone);
      say(why, p.why || '');
      say(namespace, p.namespace);
      say(name, p.workload);
      say(example, p.pods > 1 ? `such as ${p.example}` : p.example);
      say(pods, count(p.pods));
      if (code.textContent !== p.command) say(copy, 'Copy');
      say(code, p.command);
      copy.setAttribute('aria-label', `Copy the command for ${p.workload}${inNamespace(p)}`);
    };
  }, empty);
}

function showCountsOf(id, list) {
  rows(byId(id).querySelector('tbody'), list || [], (c) => c.what, (row) => {
    const what = make(head(row), 'span');
    const number = make(row, 'td', 'number');
    return (c) => {
      badge(what, c.what, c.count === 0 ? 'none' : c.tone);
      say(number, count(c.count));
    };
  });
}

function showPosture(posture) {
  showCountsOf('strength', posture.strength);
  showCountsOf('fips', posture.fips);
  showCountsOf('post-quantum', posture.postQuantum);
  table(byId('deprecated'), posture.deprecated, (d) => keyOf(d.object, d.namespace), (row) => {
    const object = head(row);
    const cells = [0, 1, 2].map(() => make(row, 'td'));
    return (d) => {
      say(object, d.object);
      say(cells[0], d.namespace || 'cluster');
      say(cells[1], d.says);
      const by = [...d.usedBy.rows];
      if (d.usedBy.more) by.push(`${count(d.usedBy.more)} more`);
      say(cells[2], by.join(', ') || 'no calls known');
    };
  }, byId('no-deprecated'));
  let asked = 'Brokers have not been asked yet.';
  if (posture.asked) asked = `${count(posture.answered)} of ${plural(posture.brokers, 'broker')} answered at ${new Date(posture.asked).toLocaleTimeString()}.`;
  if (posture.failed) asked += ` They could not be asked: ${posture.failed}.`;
  say(byId('asked'), asked);
  table(byId('uses'), posture.uses, (u) => keyOf(u.used, u.strengthBits, u.fipsReason), (row) => {
    const used = head(row);
    const cells = [0, 1, 2, 3, 4, 5, 6].map(() => make(row, 'td'));
    const [workloads, calls, strength, postQuantum, nist, cnsa, fips] = cells;
    const number = make(workloads, 'span');
    const example = make(workloads, 'span', 'note');
    calls.className = 'number';
    const strengthBadge = make(strength, 'span');
    const quantumBadge = make(postQuantum, 'span');
    const fipsBadge = make(fips, 'span');
    const reason = make(fips, 'span', 'note');
    return (u) => {
      say(used, u.used);
      say(number, count(u.workloads));
      say(example, u.workloads > 1 ? `such as ${u.example}` : u.example);
      say(calls, count(u.calls));
      badge(strengthBadge, `${u.strengthBits} bits`, u.strengthBits < 112 ? 'bad' : u.strengthBits < 128 ? 'warn' : 'none');
      badge(quantumBadge, u.postQuantum, u.postQuantum === 'vulnerable' ? 'warn' : 'good');
      say(nist, u.nist);
      say(cnsa, u.cnsa);
      badge(fipsBadge, u.fips ? 'approved' : 'not approved', u.fips ? 'good' : 'warn');
      say(reason, u.fipsReason || '');
    };
  });
}

// news tells screen readers which profiles have come to another state, a few at a time.
const states = new Map();

function news(list) {
  const told = [];
  for (const p of list.rows) {
    const id = keyOf(p.object, p.namespace);
    if (states.has(id) && states.get(id) !== p.state) told.push(`${p.object}${inNamespace(p)}: ${p.state}.`);
    states.set(id, p.state);
  }
  if (told.length > 0) say(byId('news'), told.slice(0, 3).join(' ') + (told.length > 3 ? ` And ${told.length - 3} more.` : ''));
}

// Roles of the tables: on narrow screens their style is not a table's.
const roles = { table: 'table', thead: 'rowgroup', tbody: 'rowgroup', 'thead tr': 'row', 'thead th': 'columnheader' };
for (const [selector, role] of Object.entries(roles)) {
  for (const element of document.querySelectorAll(selector)) element.setAttribute('role', role);
}

function show(fleet) {
  say(byId('scope'), `Shows ${fleet.scope}`);
  showNotices(fleet.notices);
  showCounts(fleet);
  showRollouts(fleet.rollouts);
  showProblems(fleet);
  showProfiles(fleet.profiles);
  showPosture(fleet.posture);
  news(fleet.profiles);
  document.title = fleet.counts.notServed + fleet.counts.troubled > 0 ? `(${fleet.counts.notServed + fleet.counts.troubled}) Crypto brokers` : 'Crypto brokers';
}

let last = null;
const events = new EventSource('events');
events.addEventListener('message', (event) => {
  const fleet = JSON.parse(event.data);
  last = new Date(fleet.made);
  show(fleet);
  say(byId('connection'), 'Live');
});
events.addEventListener('error', () => {
  const since = last ? ` The page shows the state of ${last.toLocaleTimeString()}.` : '';
  say(byId('connection'), `The command does not answer; it may have ended.${since}`);
});
