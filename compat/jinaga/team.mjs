// The model behind policies/guarded: a team whose tasks only its members see.

import { library } from "./client.mjs";
import { unique } from "./steps.mjs";

const { buildModel, User } = library();

export class Team {
  static Type = "Team.Team";
  constructor(owner, name = unique("team")) {
    Object.assign(this, { type: Team.Type, owner, name });
  }
}

export class Member {
  static Type = "Team.Member";
  constructor(team, user) {
    Object.assign(this, { type: Member.Type, team, user });
  }
}

export class Task {
  static Type = "Team.Task";
  constructor(team, title) {
    Object.assign(this, { type: Task.Type, team, title });
  }
}

export class Guest {
  static Type = "Team.Guest";
  constructor(name = unique("guest")) {
    Object.assign(this, { type: Guest.Type, name });
  }
}

export class Forbidden {
  static Type = "Team.Forbidden";
  constructor() {
    Object.assign(this, { type: Forbidden.Type, name: unique("forbidden") });
  }
}

const model = buildModel((b) => b
  .type(User)
  .type(Team, (f) => f.predecessor("owner", User))
  .type(Member, (f) => f.predecessor("team", Team).predecessor("user", User))
  .type(Task, (f) => f.predecessor("team", Team)));

export const tasks = model.given(Team).match((team) => team
  .successors(Task, (task) => task.team)
  .select((task) => task.title));

export const teamsOf = model.given(User).match((user) => user
  .successors(Member, (member) => member.user)
  .selectMany((member) => member.team.predecessor())
  .select((team) => team.name));

/** Narrower than the rule for tasks: only those of which no member is left. */
export const orphanedTasks = model.given(Team).match((team) => team
  .successors(Task, (task) => task.team)
  .notExists((task) => task.team.successors(Member, (member) => member.team))
  .select((task) => task.title));
