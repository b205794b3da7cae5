-- A setting that changes nothing here is taken as MariaDB takes it, and says so; one that only tunes how an
-- answer is found says nothing.
set global log_slow_rate_limit = 2;
show warnings;
show tables;
set global log_slow_rate_limit = 1;
show warnings;
set session join_cache_level = 8;
show warnings;
select @@join_cache_level, @@global.join_cache_level;
set session join_cache_level = 9;
show warnings;
set global wsrep_on = 1;
show warnings;
