// The model of the cases: the blog of Jinaga's own examples.

import { library } from "./client.mjs";
import { unique } from "./steps.mjs";

const { buildModel, User } = library();
export { User };

function fact(type, ...names) {
  const Fact = class {
    constructor(...values) {
      this.type = type;
      names.forEach((name, place) => {
        this[name] = values[place];
      });
    }
  };
  Fact.Type = type;
  return Fact;
}

export const Site = fact("Blog.Site", "creator", "domain");
export const Post = fact("Blog.Post", "site", "author", "createdAt");
export const Title = fact("Blog.Post.Title", "post", "value", "prior");
export const Published = fact("Blog.Post.Publish", "post", "date");
export const Deleted = fact("Blog.Post.Deleted", "post", "deletedAt");
export const Restored = fact("Blog.Post.Restored", "deleted");
export const Comment = fact("Blog.Comment", "post", "author", "text");
export const Approved = fact("Blog.Comment.Approved", "comment");

export const model = buildModel((b) => b
  .type(User)
  .type(Site, (f) => f.predecessor("creator", User))
  .type(Post, (f) => f.predecessor("site", Site).predecessor("author", User))
  .type(Title, (f) => f.predecessor("post", Post).predecessor("prior", Title))
  .type(Published, (f) => f.predecessor("post", Post))
  .type(Deleted, (f) => f.predecessor("post", Post))
  .type(Restored, (f) => f.predecessor("deleted", Deleted))
  .type(Comment, (f) => f.predecessor("post", Post).predecessor("author", User))
  .type(Approved, (f) => f.predecessor("comment", Comment)));

/** A user that nobody else is. Without a login a key is just a text. */
export function someone() {
  return new User(unique("key"));
}

export function someSite(creator = someone()) {
  return new Site(creator, unique("domain"));
}

export function somePost(site, name = unique("post")) {
  return new Post(site, site.creator, name);
}

export const posts = model.given(Site).match((site) => site
  .successors(Post, (post) => post.site)
  .select((post) => post.createdAt));

export const commentsOfSite = model.given(Site).match((site) => site
  .successors(Comment, (comment) => comment.post.site)
  .select((comment) => comment.text));

export const commentsByPost = model.given(Site).match((site) => site
  .successors(Post, (post) => post.site)
  .selectMany((post) => post.successors(Comment, (comment) => comment.post)
    .select((comment) => ({ post: post.createdAt, text: comment.text }))));

export const livePosts = model.given(Site).match((site) => site
  .successors(Post, (post) => post.site)
  .notExists((post) => post.successors(Deleted, (deleted) => deleted.post)
    .notExists((deleted) => deleted.successors(Restored, (restored) => restored.deleted)))
  .select((post) => post.createdAt));

/** What is said about posts that are not deleted, or are restored. */
export const liveComments = model.given(Site).match((site) => site
  .successors(Post, (post) => post.site)
  .notExists((post) => post.successors(Deleted, (deleted) => deleted.post)
    .notExists((deleted) => deleted.successors(Restored, (restored) => restored.deleted)))
  .selectMany((post) => post.successors(Comment, (comment) => comment.post)
    .select((comment) => comment.text)));

export const publishedPosts = model.given(Site).match((site) => site
  .successors(Post, (post) => post.site)
  .exists((post) => post.successors(Published, (published) => published.post))
  .select((post) => post.createdAt));

const currentTitles = (post) => post.successors(Title, (title) => title.post)
  .notExists((title) => title.successors(Title, (next) => next.prior));

/** Posts with their titles, and comments with their approvals. */
export const pages = model.given(Site).match((site) => site
  .successors(Post, (post) => post.site)
  .notExists((post) => post.successors(Deleted, (deleted) => deleted.post))
  .select((post) => ({
    createdAt: post.createdAt,
    titles: currentTitles(post).select((title) => title.value),
    comments: post.successors(Comment, (comment) => comment.post).select((comment) => ({
      text: comment.text,
      approvals: comment.successors(Approved, (approved) => approved.comment),
    })),
  })));
