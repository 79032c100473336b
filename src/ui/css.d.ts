/** The bundler adds imported style sheets to the page's stylesheet. */
declare module '*.css';
